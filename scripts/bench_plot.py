"""Line plots as SVG, without dependencies: logarithmic horizontal axis, vertical axis from 0."""
import math

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 640, 320, 70, 150, 36, 46
COLOURS = ["#0b6e99", "#d9730d", "#0f7b6c", "#ad1a72", "#64473a"]


def ticks(most):
    """Round numbers from 0 to a little over `most`."""
    step = 10 ** math.floor(math.log10(most))
    step = next(step * f for f in (0.2, 0.5, 1, 2) if most / (step * f) <= 6)
    return [step * i for i in range(math.ceil(most / step) + 1)]


def short(x):
    for limit, unit in ((1e6, "M"), (1e3, "k")):
        if x >= limit:
            return f"{x / limit:g}{unit}"
    return f"{x:g}"


def plot(title, x_label, lines):
    """`lines`: name -> [(x, y), ...]."""
    xs = sorted({x for points in lines.values() for x, _ in points})
    marks = ticks(max(y for points in lines.values() for _, y in points))
    low, span = math.log(xs[0]), math.log(xs[-1] / xs[0]) or 1
    right, bottom = WIDTH - RIGHT, HEIGHT - BOTTOM

    def place(x, y):
        return (LEFT + (math.log(x) - low) / span * (right - LEFT), bottom - y / marks[-1] * (bottom - TOP))

    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="12">',
           f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>',
           f'<text x="{LEFT}" y="20" font-size="14">{title}</text>']
    for mark in marks:
        y = place(xs[0], mark)[1]
        out.append(f'<path d="M{LEFT} {y:.1f}H{right}" stroke="#ddd"/>'
                   f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{short(mark)}</text>')
    for x in xs:
        out.append(f'<text x="{place(x, 0)[0]:.1f}" y="{bottom + 18}" text-anchor="middle">{short(x)}</text>')
    out.append(f'<text x="{(LEFT + right) / 2}" y="{HEIGHT - 8}" text-anchor="middle">{x_label}</text>')
    for i, (name, points) in enumerate(lines.items()):
        colour, places = COLOURS[i % len(COLOURS)], [place(x, y) for x, y in points]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        out.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        out += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in places]
        out.append(f'<text x="{right + 12}" y="{TOP + 8 + 18 * i}" fill="{colour}">{name}</text>')
    return "\n".join(out) + "\n</svg>\n"
