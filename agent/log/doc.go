// Package log defines the interfaces of the log: append a record, follow the records
// from a position, reply. Its folders carry the log over NATS, admit hosts to it, store
// what is kept next to it, and check that it is still the same log.
//
// It decides the subjects and who may write to which. It never interprets a body and
// knows nothing about runs.
//
// # Subjects
//
// One JetStream stream for each tenant (OSU_<tenant>) is the only truth about runs. Every
// record is synced, and nothing can be deleted. A removed tenant keeps its stream, and is
// served again only when somebody restores it or the site's configuration names it.
//
//	subject                             writer       content
//	-------------------------------------------------------------------------------------------
//	osu.<tenant>.cmd.all, .cmd.host     controller   commands, Avassa's JSON byte for byte.
//	                                                 Header Osu-Run is the id of the run,
//	                                                 Osu-Host the host
//	osu.<tenant>.cmd.all.<environment>  controller   a prepare of an environment that is not the
//	                                                 default one, with its name in the header
//	                                                 Osu-Environment
//	osu.<tenant>.cmd.event              controller   facts about a run: opened, admitted, slot,
//	                                                 ran, silent, recovered, busy, idle, frozen,
//	                                                 requests of operators, finished, ...;
//	                                                 missed, for a window without a run
//	osu.<tenant>.reply.<run>.           gate         the one reply of the host to this command
//	  <action>.<host>
//
// The commands to all hosts share one subject, because a subject for each host would make
// every conditional append look at all of them. The event opened is written before the
// prepare of its run and contains the rollout and the roster, so a crash between the two
// loses nothing.
//
// # Why two writers do no harm
//
// An append names the last sequence of cmd.> that its controller has seen, and is refused
// if the log has moved on (ErrBehind). A reply is appended on condition that its subject is
// empty (ErrAnswered).
//
// # What is not on the log
//
// Heartbeats, progress, tasks and outcomes travel as plain messages: a host cannot fill the
// log with them, and reading them costs no sync. The controller sends a task until its
// outcome is on the log (ran), so a task may run twice. Heartbeats are sent once a minute,
// at a multiple of five seconds, so that a site wakes once for many hosts.
//
// What is wrong with a host besides its runs (its key, a second worker, a clone, its clock,
// its protocol) is a warning. Gate and embedded server report it to the controller, which
// keeps it in memory for ten minutes. The name that an unauthenticated connection claims
// proves nothing, so warnings about keys are few and come last.
//
// Streams next to the log have the ended runs (osu-runs-<tenant>), the news
// (osu-news-<tenant>) and the outputs of actions (osu-output-<tenant>). When an ended run is
// stored, its records are trimmed from the log. A run that changes after its end is stored
// again with the last record that it contains (Osu-As-Of), so a later state replaces an
// earlier one and never the other way round.
//
// # Is it still the same log?
//
// Package guard keeps the last sequence and a hash of all records outside of the log. The
// hosts are witnesses: a heartbeat has the position of the host's journal. If the log went
// backwards, was cut or changed, or lacks what a host knows, the controller sends no
// command, and /readyz says why. A person then restores a backup, or accepts the log with
// osupgrade-agent recover, which gives it a new identity and continues beyond all sequences
// that were known. A host recognises a log of another identity by its journal: it answers
// again what it has done, and reports any older run that it does not know.
package log
