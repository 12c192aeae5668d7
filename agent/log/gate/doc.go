// Package gate admits hosts to a site: the gate answers their calls, keeps the lease
// of each host, and caches the newest commands. Client is the host's side of the
// calls. The package knows no transport: package jetstream carries it over NATS, the
// simulation over a simulated network.
//
// It decides who may work for a host, and what a host may write. It never decides
// what a host does, and never keeps the state for a decision in memory alone:
// several gates serve one log, and each may be behind.
//
// # Why hosts need a gate
//
// A host must not reach any subject of JetStream. NATS does not check the reply subject of
// a publish, and JetStream publishes there with its own rights, so such a host could write
// anywhere. A host may publish only to osu-in.<tenant>.<host>.>, which no stream captures.
// The gate acts in its place: it appends the reply to the newest run, stores what the host
// reports, and returns the newest commands. It answers only to the host's own inbox.
//
// The server has no consumer for each host: the position of a host is in the host's
// journal, together with the identity of the log.
//
// # Commands
//
// The gate follows the commands and pushes each to its host. A prepare names all hosts, and
// pushing it to each of them would cost the square of their number. The gate pushes a hint
// instead, and each host asks for its own part.
//
// The runs of several environments go side by side, so there is a newest prepare of each. A
// host belongs to the environment of the last prepare that has named it, else to the default
// one, and gets the prepare of no other: it takes part in one run at a time, so the sequences
// of its commands only grow. What clears the commands of a host is the next prepare of its
// environment. The hint of a prepare goes to its members, and to all hosts for the default
// environment.
//
// # Releases
//
// The prepare of a run with a release names it with its digest, and each member asks for the text.
// The gate reads it from the event that has opened the run, never from the object that somebody
// declares: a run installs what it was opened with. The host compares the digest.
//
// # Outputs of steps
//
// A command says whether steps of its run have given outputs, or steps that earlier runs have done for
// it. A member of the run may then ask for their values: the gate opens what the log has sealed, and
// tells it to nobody else.
//
// # Leases
//
// One worker acts for a host: the holder of the host's lease. The lease is one record,
// {worker, epoch, incarnation, replaced, vacant, since}, which a gate changes only by
// compare-and-set.
//
//   - The epoch grows when the lease passes to another worker. It is the fencing token:
//     a reply has the epoch of its worker (Osu-Epoch), and a worker executes no command of
//     another epoch.
//   - The incarnation identifies the process. The newest process of a worker holds the
//     lease. A replaced process that calls again runs on a clone of the machine: it waits
//     until the newer process is silent, and then gets the lease with a new epoch.
//   - A worker that stops in order without an action in progress gives the lease back
//     (vacant). A worker that is killed loses it when it has been silent for long enough.
//   - A process asks for the revision of the lease that it wants, so a late request of a
//     process that has ended takes the lease from nobody.
//   - A task names the incarnation that it is for. A process that was started later does
//     not know what has been done since, and drops it.
//
// # Reports
//
// What a host reports besides its replies (versions, inventory, what an upgrade would
// change now, the plan of a run, the output of its actions) is stored next to the log, never
// on it. Package report has a table of the kinds, each with a limit for its size and for a
// day, so a host cannot fill the disk.
// The plan and the output are accepted only for the newest run of the host. A host reports what has
// changed, and the same again after a day: an older report is from a host that is away.
package gate
