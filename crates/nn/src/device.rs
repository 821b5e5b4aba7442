//! Where tensors live.

use candle_core::Device;

use crate::NnError;

/// The names of devices.
pub const DEVICES: [&str; 4] = ["auto", "cpu", "cuda", "metal"];

/// The device for `auto`, `cpu`, `cuda` or `metal`.
///
/// `auto` takes the first CUDA or Metal device that this build supports and that answers, and else the CPU.
///
/// # Errors
/// [`NnError::Device`] if the name is unknown, or the build or the machine has no such device.
pub fn select_device(name: &str) -> Result<Device, NnError> {
    let error = |reason: String| NnError::Device { name: name.to_owned(), reason };
    let built = |what: &str, has: bool| {
        if has {
            Ok(())
        } else {
            Err(error(format!("this program was built without it: build and run with `make FEATURES={what} ...`")))
        }
    };
    match name {
        "cpu" => Ok(Device::Cpu),
        "cuda" => {
            built("cuda", cfg!(feature = "cuda"))?;
            Device::new_cuda(0).map_err(|e| error(e.to_string()))
        }
        "metal" => {
            built("metal", cfg!(feature = "metal"))?;
            Device::new_metal(0).map_err(|e| error(e.to_string()))
        }
        "auto" => {
            if cfg!(feature = "cuda")
                && let Ok(device) = Device::new_cuda(0)
            {
                return Ok(device);
            }
            if cfg!(feature = "metal")
                && let Ok(device) = Device::new_metal(0)
            {
                return Ok(device);
            }
            Ok(Device::Cpu)
        }
        _ => Err(error("expected auto, cpu, cuda or metal".to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::select_device;

    #[test]
    fn names() {
        assert!(select_device("cpu").unwrap().is_cpu());
        assert!(select_device("auto").is_ok());
        assert!(select_device("tpu").unwrap_err().to_string().contains("auto, cpu, cuda or metal"));
        if !cfg!(feature = "cuda") {
            assert!(select_device("cuda").unwrap_err().to_string().contains("FEATURES=cuda"));
        }
    }
}
