// Package worker executes the commands to one host: it receives a command from
// the log, writes the next action to its journal, takes the action with a strategy,
// writes the outcome to the journal, and replies.
//
// Package decide decides the next action, as a pure function of what the worker remembers and
// sees. The loop gathers what decide asks for, writes the state, and acts. The package never
// decides which host goes when: the controller does.
//
// The files, from the top down: run.go starts and ends a worker; loop.go is the loop; action.go
// takes an action of a command; confirm.go confirms the system that has started. hold.go holds the
// lease and runs the jobs beside the loop: checks.go, versions.go, offer.go, output.go, plan.go,
// busy.go, labels.go and report.go. Both stand on call.go (calls of the strategy), release.go (what a
// run installs), disk.go (writes the
// state), alive.go (heartbeats), see.go and accept.go (what the worker sees), and supervisor.go
// (promises to the supervisor). worker.go and options.go are what a worker has. lease.go,
// tasks.go, telling.go, self.go, queue.go and files.go know nothing of a Worker.
//
// # Crashes
//
// The journal is written before each action. If it says upgrading at a start, nobody knows
// what happened, and the worker asks the strategy (Resume). If it says rebooting with
// another boot id, the reboot has happened. With the same boot id, the worker was killed
// before the machine accepted the reboot: it asks once more, until not-after, and unless
// another worker has held the lease since. A reboot request does not survive the boot, so
// asking twice cannot reboot twice.
//
// # Releases
//
// The prepare of a run may name a release by its digest. The worker gets its text from the site,
// compares the digest, and writes the text to its journal before it prepares. Each later action of
// the run goes by the journal, whatever becomes of the release. A host that the release is not for,
// by the versions that it has now, refuses it. Done then also means that the host reports each
// version that the release says it installs.
//
// # What done means
//
// What prepare will change is the plan. It is on disk before the worker answers, keyed by
// the run and the time of its prepare, and each later action gets it. Before the worker
// answers reboot-required or done, it asks the strategy what of the plan is missing. After
// a power cut a package manager may find its lists empty and exit 0 without doing anything;
// the worker therefore compares the host with the plan. A host that has lost its plan says
// so, and not that it is upgraded.
//
// # More than one bootable system
//
// After each start of the machine, a strategy with more than one bootable system confirms
// the running one: in an upgrade after its verify and before the reply, otherwise at once.
// A run with checks after its hosts says so with each command. What such a run installs is
// on trial: it is confirmed only when these checks have passed, before the site hears that
// they did. Until then neither a start of the machine or of the worker nor another run
// confirms it, unless a person accepts it. Each rule is a row of
// TestRulesOfATrial in package decide; its trial.go has the reasons.
//
// If the machine gave the new system up by itself, the reply says rolled back, with both
// versions and class boot; between runs the host has the warning rolled-back. That version
// is rejected in each plan until there is another one or a person accepts it
// (osupgrade-agent worker accept). That is a file of its own, so that worker and person
// never write the same file. A rollback may itself need a reboot: the worker then reboots
// without a command, and answers afterwards.
//
// # Retries
//
// A failure has a class. The worker repeats an action that fails with lock or transient, with
// back-off. The tries are in the journal and together fit in the limit of one action, however
// often the worker is started. An upgrade is not started again in this way, but resumed. So it
// is with an action that ends its worker or the machine: the first few times it goes on at once,
// then after growing pauses, and at the limit it has failed.
//
// # Busy hosts
//
// A host is busy while a file in /run/osupgrade/busy counts (package busy). Heartbeats say
// so. The run passes over busy hosts, which is order and display. What keeps an upgrade
// from a busy host is the worker: it defers the command in the journal until the host is
// idle or not-after has passed.
//
// # Reports
//
// The worker reads the versions at its start, after each action, when a file changes that its
// strategy names, and once in an interval. Each time it also asks the strategy what an
// upgrade would change now (the offer), never while an action is in progress. It reads the
// machine from /sys and /proc at its start, when the kernel reports a change, and once a
// day. It sends what differs from the last report, and the same again after a day.
//
// # Services
//
// Under systemd, the loop feeds the watchdog: it promises when it will come round again.
// When its program was replaced, a worker ends once no run has another command for it and
// no check or hook is in progress, and systemd starts the new program. A package therefore
// restarts nothing.
package worker
