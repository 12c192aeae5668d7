package message

// WarningKind is what is wrong with a host beside its runs.
type WarningKind string

// The kinds of warnings.
const (
	// WarnKey means that a worker was refused for its key.
	WarnKey WarningKind = "key-refused"
	// WarnSecondWorker means that two workers want to work for the host.
	WarnSecondWorker WarningKind = "second-worker"
	// WarnClone means that the worker of the host runs on two machines.
	WarnClone WarningKind = "clone"
	// WarnClock means that the clocks of host and site differ.
	WarnClock WarningKind = "clock"
	// WarnProtocol means that worker and site have no protocol in common.
	WarnProtocol WarningKind = "protocol"
	// WarnFlood means that the host was disconnected because it sent too much.
	WarnFlood WarningKind = "flood"
	// WarnRolledBack means that the machine went back from a version by itself.
	WarnRolledBack WarningKind = "rolled-back"
)

// WarningKinds lists them.
func WarningKinds() []WarningKind {
	return []WarningKind{WarnKey, WarnSecondWorker, WarnClone, WarnClock, WarnProtocol, WarnFlood, WarnRolledBack}
}
