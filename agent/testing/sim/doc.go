// Package sim plays the whole protocol in simulated time. The real controllers and
// the real workers run against a simulated log, network, store, machines and
// operator, and everything fails that can fail. After each record and each effect
// on a machine it checks the invariants of package oracle, and at the end of a seed
// that each run has ended.
//
// It runs inside of a testing/synctest bubble, where time passes only while all
// goroutines wait. It is of no use outside of tests.
//
// # What is real and what is simulated
//
//	controller.Controller, run, guard     real
//	worker.Worker with its journal        real, on a folder in memory
//	what must hold                        oracle
//	gate.Gate and gate.Client             real, one gate a site
//	log, store of leases                  log/memory, behind the faults of log.go, sitelog.go, gate.go
//	what a host sends and is sent         host.go
//	network                               net.go
//	store, news                           store.go, news.go
//	machines, package manager, reboots    machine.go, system.go
//	systems that start, or are given up   confirm.go
//	programs that keep a host busy        busy.go
//	operator, configuration, rollouts     operator.go, config.go
//	windows, and those that are skipped   window.go
//	environments                          environment.go
//	whether a run goes on without those
//	that are late                         patience.go
//	whether each host begins that can     startable.go
//	byzantine hosts                       byzantine.go
//	embedded server and transport         not here; TestRealServer runs them
//
// sim.go puts one seed together, process.go ends processes, trace.go records what
// happens.
//
// # Faults
//
// All faults are in faults.go. Some happen at an instant: a message is lost, a
// process dies or is paused at one of its labels, an action fails. Each belongs to a
// group, and half of all seeds are spared a group. Others are outages, which begin and end:
// a link is cut, a disk is full, a clock is wrong. In the quiet phase, after at
// most 25 minutes, no fault happens any more, and each run must end in time.
//
// In 10,000 seeds each fault and each result in Expected must happen at least
// once, and a process must die at each label. TestSimulation fails otherwise.
//
// # Replay
//
// Everything follows from the seed, but for the order in which the runtime runs
// goroutines that are ready at the same instant. To replay a seed:
//
//	GOMAXPROCS=1 go test ./agent/testing/sim -run TestSimulation -count=1 -sim.seed=N -sim.v
//
// A seed that failed on a busy machine may pass then. Try it some times with
// -count, or search the seeds beside it.
//
// # How to read a violation
//
// A violation names the invariant by its number in package oracle, the host and the
// record. The trace before it says in order what was written to the log ("log
// 17 ..."), what the machines did ("h02 is upgraded for run 9"), what processes
// logged ("controller 0 says: ...") and which faults happened. Ask first whether
// the record itself is wrong. If it is, its writer decided wrongly: look for what
// the writer had not seen. If the record is right, a host or the oracle is wrong.
package sim
