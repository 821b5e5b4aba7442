//! The service with evaluators that are slow, fail and panic. A hang fails the test by a watchdog's deadline.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use games::{Connect4, Game, MoverValue, Rng, TicTacToe};

use super::{Service, ServiceStats};
use crate::testing::{HashEvaluator, With};
use crate::{Client, Evaluator, Request, Search, SearchConfig, SearchError, ServiceConfig, UniformEvaluator, drive};

/// Runs `body` on a thread and fails if it takes longer than ten seconds.
fn within_time<T: Send + 'static>(body: impl FnOnce() -> T + Send + 'static) -> T {
    let (sender, receiver) = mpsc::channel();
    let thread = thread::spawn(move || drop(sender.send(body())));
    match receiver.recv_timeout(Duration::from_secs(10)) {
        Ok(result) => result,
        Err(mpsc::RecvTimeoutError::Timeout) => panic!("the service hangs"),
        Err(mpsc::RecvTimeoutError::Disconnected) => match thread.join() {
            Err(payload) => std::panic::resume_unwind(payload),
            Ok(()) => panic!("no result"),
        },
    }
}

fn service(executors: usize, batch: usize, queue: usize, wait_us: u64) -> Service {
    Service::start(ServiceConfig { executors, batch, queue, wait_us }, |_| Ok(HashEvaluator)).unwrap()
}

fn searches(count: u64, simulations: u32) -> Vec<Search<Connect4>> {
    let config = SearchConfig { simulations, noise_weight: 0.25, leaves: 2, ..SearchConfig::default() };
    (0..count).map(|i| Search::new(config, Connect4::start(), Rng::new(i))).collect()
}

const LONG: u64 = 60_000_000;

#[test]
fn searches_are_the_same_through_the_service() {
    within_time(|| {
        let mut alone = searches(12, 100);
        drive(&mut alone, &mut HashEvaluator).unwrap();
        // A queue smaller than what one worker asks for at once, and fewer games than the batch.
        for (executors, batch, queue) in [(1, 64, 64), (2, 5, 5), (3, 1, 1)] {
            let service = service(executors, batch, queue, 500);
            let parts = service
                .run_workers(3, |worker, client| {
                    let mut part: Vec<_> = searches(12, 100).into_iter().skip(worker * 4).take(4).collect();
                    drive(&mut part, client)?;
                    Ok::<_, SearchError>(part)
                })
                .unwrap();
            for (a, b) in alone.iter().zip(parts.iter().flatten()) {
                assert_eq!(a.root_report().unwrap(), b.root_report().unwrap());
            }
            assert!(service.stats().positions > 0 && service.stats().mean_batch() >= 1.0);
            service.stop().unwrap();
        }
    });
}

#[test]
fn a_batch_that_cannot_fill_is_not_waited_for() {
    within_time(|| {
        // The time-out is a minute: only "every live client waits" can send these batches off.
        let service = service(2, 1000, 1000, LONG);
        let start = Instant::now();
        service
            .run_workers(3, |worker, client| drive(&mut searches(1 + worker as u64, 50 * (1 + worker as u32)), client))
            .unwrap();
        assert!(start.elapsed() < Duration::from_secs(5));
    });
}

#[test]
fn an_idle_client_costs_the_time_out_only() {
    within_time(|| {
        let service = service(1, 1000, 1000, 1000);
        let idle = service.client();
        let mut client = service.client();
        for _ in 0..5 {
            client.evaluate(&mut [Request::new(&TicTacToe::start())]).unwrap();
        }
        drop(idle);
    });
}

#[test]
fn full_batches_are_joined_from_several_clients() {
    within_time(|| {
        let service = service(1, 4, 64, LONG);
        let idle = service.client(); // keeps "every client waits" from being true
        let sizes = service
            .run_workers(2, |_, client| {
                client.evaluate(&mut [Request::new(&TicTacToe::start()), Request::new(&TicTacToe::start())])
            })
            .map(|_| service.stats());
        assert_eq!(sizes.unwrap().batches, 1);
        drop(idle);
    });
}

#[test]
fn a_batch_that_is_all_there_is_shared_among_idle_executors() {
    within_time(|| {
        let slow = |_: usize| {
            Ok(With(|request: &mut Request| {
                thread::sleep(Duration::from_millis(20));
                HashEvaluator.evaluate(std::slice::from_mut(request))
            }))
        };
        let service =
            Service::start(ServiceConfig { executors: 2, batch: 64, ..ServiceConfig::default() }, slow).unwrap();
        thread::sleep(Duration::from_millis(50)); // both executors are idle now
        service.client().evaluate(&mut vec![Request::new(&TicTacToe::start()); 8]).unwrap();
        assert_eq!(service.stats(), ServiceStats { batches: 2, positions: 8 });
    });
}

#[test]
fn a_failing_executor_is_an_error_for_all() {
    for panics in [false, true] {
        let errors = within_time(move || {
            let calls = Arc::new(AtomicUsize::new(0));
            let config = ServiceConfig { executors: 2, batch: 4, ..ServiceConfig::default() };
            let service = Service::start(config, |_| {
                let calls = Arc::clone(&calls);
                Ok(With(move |request: &mut Request| {
                    if calls.fetch_add(1, Ordering::Relaxed) == 200 {
                        assert!(!panics, "the executor's last words");
                        return Err(SearchError::NotFinite { what: "a made-up fault" });
                    }
                    HashEvaluator.evaluate(std::slice::from_mut(request))
                }))
            })
            .unwrap();
            let clients: Vec<Client> = (0..4).map(|_| service.client()).collect();
            // The other executor still answers while this one dies, so each worker goes on until it is told.
            let until_told = |mut client: Client| {
                loop {
                    if let Err(error) = drive(&mut searches(4, 100), &mut client) {
                        return error.to_string();
                    }
                }
            };
            let threads: Vec<_> = clients.into_iter().map(|client| thread::spawn(move || until_told(client))).collect();
            let mut errors: Vec<String> = threads.into_iter().map(|t| t.join().unwrap()).collect();
            let late = service.client().evaluate(&mut [Request::new(&TicTacToe::start())]);
            errors.push(late.unwrap_err().to_string());
            errors.push(service.stop().unwrap_err().to_string());
            errors
        });
        let expected = if panics { "the executor's last words" } else { "a made-up fault" };
        assert_eq!(errors.len(), 6);
        assert!(errors.iter().all(|e| e.contains(expected)), "{errors:?}");
    }
}

#[test]
fn a_worker_that_panics_or_fails_is_an_error_for_all() {
    for panics in [false, true] {
        let (error, others) = within_time(move || {
            let service = service(1, 8, 64, LONG);
            let others = AtomicUsize::new(0);
            let result = service.run_workers(3, |worker, client| {
                if worker == 1 {
                    client.evaluate(&mut [Request::new(&TicTacToe::start())])?;
                    assert!(!panics, "the worker's last words");
                    return Err(SearchError::Config { field: "made_up", expected: "else", got: String::new() });
                }
                // Without the failure this would go on for ever.
                loop {
                    if let Err(error) = drive(&mut searches(2, 100), client) {
                        others.fetch_add(1, Ordering::Relaxed);
                        return Err::<(), _>(error);
                    }
                }
            });
            (result.unwrap_err().to_string(), others.into_inner())
        });
        assert!(error.contains(if panics { "the worker's last words" } else { "made_up" }), "{error}");
        assert_eq!(others, 2);
    }
}

#[test]
fn a_client_that_dies_in_its_thread_ends_the_service_and_one_that_leaves_does_not() {
    within_time(|| {
        let service = service(1, 64, 64, LONG);
        let leaving = service.client();
        let mut client = service.client();
        let worker = thread::spawn(move || {
            let result = client.evaluate(&mut [Request::new(&TicTacToe::start())]);
            (client, result)
        });
        thread::sleep(Duration::from_millis(50));
        drop(leaving); // now every live client waits, and the batch goes off
        let (mut client, result) = worker.join().unwrap();
        result.unwrap();
        let dying = service.client();
        let death = thread::spawn(move || {
            let _client = dying;
            thread::sleep(Duration::from_millis(50));
            panic!("dies with its client");
        });
        let error = client.evaluate(&mut [Request::new(&TicTacToe::start())]).unwrap_err();
        assert!(matches!(error, SearchError::Worker { .. }), "{error}");
        assert!(death.join().is_err());
    });
}

#[test]
fn the_network_is_swapped_while_searches_run() {
    within_time(|| {
        let value = |v: f32| {
            With(move |request: &mut Request| {
                request.priors = vec![1.0; request.legal.len()];
                request.value = MoverValue(v);
                Ok(())
            })
        };
        let config = ServiceConfig { executors: 2, batch: 4, ..ServiceConfig::default() };
        let service = Service::start(config, |_| Ok(value(0.0))).unwrap();
        let done = AtomicBool::new(false);
        thread::scope(|scope| {
            let mut client = service.client();
            let done = &done;
            scope.spawn(move || {
                while !done.load(Ordering::Relaxed) {
                    drive(&mut searches(3, 50), &mut client).unwrap();
                }
            });
            let mut client = service.client();
            for i in 1..=20 {
                service.swap(|_| Ok(value(i as f32 / 20.0))).unwrap();
                let mut requests = vec![Request::new(&TicTacToe::start()); 9];
                client.evaluate(&mut requests).unwrap();
                assert!(requests.iter().all(|r| r.value == MoverValue(i as f32 / 20.0)), "the new network answers");
            }
            drop(client);
            let refused: Result<(), SearchError> = service.swap(|_| Err::<UniformEvaluator, _>(SearchError::Stopped));
            assert!(refused.is_err());
            done.store(true, Ordering::Relaxed);
        });
        service.stop().unwrap();
    });
}

#[test]
fn a_stopped_service_refuses() {
    within_time(|| {
        let service = service(1, 8, 8, 100);
        let mut client = service.client();
        client.evaluate(&mut []).unwrap();
        service.stop().unwrap();
        let error = client.evaluate(&mut [Request::new(&TicTacToe::start())]).unwrap_err();
        assert!(matches!(error, SearchError::Stopped));
        let failing = Service::start(ServiceConfig::default(), |_| Err::<UniformEvaluator, _>(SearchError::Stopped));
        assert!(failing.is_err(), "a factory's error is the caller's");
        let zero = ServiceConfig { batch: 0, ..ServiceConfig::default() };
        assert!(Service::start(zero, |_| Ok(UniformEvaluator)).is_err());
    });
}
