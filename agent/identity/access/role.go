package access

import "slices"

// Role names a set of rules. What any role of a principal allows is allowed.
type Role = string

// The roles of people and programs.
const (
	// Admin does everything that its tenant has, and of all tenants everything.
	Admin Role = "admin"
	// Operator watches, starts and retries runs, asks hosts for their health, and pauses, resumes and aborts them and
	// releases hosts from them: whoever may start a run may stop it.
	Operator Role = "operator"
	// Approver watches, and approves the stages that wait for it.
	Approver Role = "approver"
	// Viewer reads everything but what lets somebody in.
	Viewer Role = "viewer"
	// Calendar reads the calendar feed and nothing else. It alone may be in a URL.
	Calendar Role = "calendar"
	// FleetLock locks and unlocks the hosts that reboot by themselves, and does nothing else.
	FleetLock Role = "fleetlock"
)

// The single rights, from which a token for a program can be put together. Their names are
// those of the tokens that were made before there were roles.
const (
	// Reads is Viewer by its former name.
	Reads Role = "read"
	// Writes changes the configuration, the rollout, the calendars and the webhooks, tests
	// these, and moves and deletes hosts.
	Writes Role = "write"
	// Starts asks for the health, starts, pauses, resumes, aborts and approves runs, and releases hosts.
	Starts Role = "start"
	// Joins makes, lists and removes join tokens: it says which hosts are let in.
	Joins Role = "join"
)

// Machine is the role of who may write the folder of the site anyway. Its name is that of no
// role that a credential can have, nor of a policy.
const Machine Role = "(machine)"

// Roles returns all roles, the narrowest last.
func Roles() []Role {
	return []Role{Admin, Operator, Approver, Viewer, Calendar, FleetLock, Reads, Writes, Starts, Joins}
}

// IsRole reports whether there is a role of that name.
func IsRole(name string) bool { return slices.Contains(Roles(), name) }

// Rights returns the single rights.
func Rights() []Role { return []Role{Reads, Writes, Starts, Joins} }

const (
	configured = "/v1/config/tenants/*/os-upgrade"
	current    = "/v1/state/tenants/*/os-upgrade"
	ownToken   = "/v1/state/strongbox/token"
	password   = "/v1/state/strongbox/password"
	metrics    = "/metrics"
	// statuses are those of all tenants whose state the caller may read.
	statuses = "/v1/state/status"
	// system is what opens the strongbox and signs certificates, which is on the site's machine.
	system = "/v1/state/machine/**"
)

// everything are all operations.
var everything = []Operation{Create, Read, Update, Delete, Execute}

// reading are the rules of who watches. A join token lets a host in, and its list says
// where the next one will come from.
var reading = []Rule{
	{Path: configured + "/**", Allow: []Operation{Read}},
	{Path: current + "/**", Allow: []Operation{Read}},
	{Path: current + "/join-tokens/**", Reject: []Operation{Read}},
	{Path: metrics, Allow: []Operation{Read}},
	// Tenants belong to the site: this is for who is valid for all.
	{Path: "/v1/config/tenants/*", Allow: []Operation{Read}},
	{Path: "/v1/config/tenants", Allow: []Operation{Read}},
	{Path: "/v1/state/tenants/*", Allow: []Operation{Read}},
	{Path: "/v1/state/tenants", Allow: []Operation{Read}},
	renewing,
}

// renewing is the rule of who may have the life of its own token extended. Whether that
// token has one that can be is another matter.
var renewing = Rule{Path: ownToken + "/refresh", Allow: []Operation{Execute}}

// everybody are the rules of every principal, whatever its roles: a user may change its own
// password, and everybody may ask which tenants it may see. Whether it is a user, and which
// tenants these are, are other matters.
var everybody = []Rule{{Path: password, Allow: []Operation{Execute}}, {Path: statuses, Allow: []Operation{Read}}}

// skipping is the rule of who may skip a window, and undo that.
var skipping = Rule{Path: current + "/skip-window", Allow: []Operation{Execute, Delete}}

// executing returns a rule for each of these operations on runs.
func executing(operations ...string) []Rule {
	all := make([]Rule, len(operations))
	for i, operation := range operations {
		all[i] = Rule{Path: current + "/" + operation, Allow: []Operation{Execute}}
	}
	return all
}

// ofMachine are the rules of Machine.
var ofMachine = []Rule{{Path: "/**", Allow: everything}}

// rules are those of each role.
var rules = map[Role][]Rule{
	Admin:     {{Path: "/v1/**", Allow: everything}, {Path: system, Reject: everything}, {Path: metrics, Allow: []Operation{Read}}},
	Operator:  slices.Concat(reading, executing("start", "health", "pause", "resume", "abort", "release", "refresh", "calendars/*/refresh"), []Rule{skipping}), // A retry is a start.
	Approver:  slices.Concat(reading, executing("approve")),
	Viewer:    reading,
	Calendar:  {{Path: current + "/windows.ics", Allow: []Operation{Read}}},
	FleetLock: executing("fleetlock/**"),
	Reads:     reading,
	Writes: {
		{Path: configured + "/**", Allow: []Operation{Create, Update, Delete}},
		{Path: current + "/hosts/*", Allow: []Operation{Delete}},
		{Path: current + "/hosts/*/environment", Allow: []Operation{Update}},
		{Path: current + "/webhooks/**", Allow: []Operation{Execute}},
		{Path: current + "/calendars/**", Allow: []Operation{Execute}},
		renewing,
	},
	Starts: append(executing("start", "health", "pause", "resume", "abort", "approve", "release", "refresh", "calendars/*/refresh"), skipping, renewing),
	Joins:  {{Path: current + "/join-tokens/**", Allow: everything}, renewing},
}
