package v1

// Preflight is what a start would do: the answer of POST .../start?validate=true.
type Preflight struct {
	// Health is how the checks come out that the run would be asked before it prepares any host;
	// absent when there are none.
	Health *HealthReport `json:"health,omitempty"`
	// Refused says why the start would be refused now. The other members then describe the
	// next window or, if there is none, a start outside of windows.
	Refused string `json:"refused,omitempty"`
	// SkippedWindow is the window of the run, if somebody has skipped it: it opens no run by itself.
	SkippedWindow *SkippedWindow `json:"skipped-window,omitempty"`
	// UpToDate says that all hosts of the run have its release already, by what they have said last: a
	// window opens no run then. It is absent otherwise.
	UpToDate string `json:"up-to-date,omitempty"`
	// Run is the run as it would be opened: its hosts in their order, with those that
	// are left out, and its stages. Absent when there would be none whatever the time.
	Run *Run `json:"run,omitempty"`
	// Usual is what ExpectedEnd is calculated from; absent when no run of the history
	// says how long a host takes.
	Usual *Usual `json:"usual,omitempty"`
	// Fits reports whether all hosts are expected to be done by not-after; absent when that
	// is unknown.
	Fits *bool `json:"fits,omitempty"`
	// Offers are what the upgrade of each host of the run would change, in the order of the
	// run. Hosts that have reported nothing are listed, too.
	Offers []HostOffer `json:"offers,omitempty"`
	// Warnings are about disruption budgets: what in them matches no host, and which stage lets
	// more hosts leave service than a budget. They are also about the release, if hosts may get
	// different versions of a package.
	Warnings []IntentWarning `json:"warnings,omitempty"`
	// Missing is what hosts lack for the run, as their workers say.
	Missing []Missing `json:"missing,omitempty"`
	// Unknown are the hosts whose workers do not report their scripts, although the run
	// needs some.
	Unknown []string `json:"unknown,omitempty"`
}

// HostOffer is what an upgrade of a host would change, as the host reported it.
type HostOffer struct {
	Hostname string `json:"hostname"`
	OfferSummary
}

// Usual is how long the work took in an earlier run.
type Usual struct {
	// Run is the run that it was measured in.
	Run uint64 `json:"run"`
	// PrepareSeconds is for all hosts together, HostSeconds for one host: nine out of ten
	// were not slower.
	PrepareSeconds int `json:"prepare-seconds"`
	HostSeconds    int `json:"host-seconds"`
}

// Missing is what a host lacks for a run.
type Missing struct {
	// Host is empty for the site itself.
	Host string `json:"host,omitempty"`
	// What describes it in words.
	What []string `json:"what"`
}
