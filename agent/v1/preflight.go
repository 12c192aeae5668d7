package v1

// Preflight is what a start would do: the answer of POST .../start?validate=true.
type Preflight struct {
	// Refused is why the start would be refused now; the rest is then of the next
	// window, or of a start outside of the windows when there is none.
	Refused string `json:"refused,omitempty"`
	// Run is the run as it would be opened: its hosts in their order, with those that
	// are left out, and its stages. Absent when there would be none whatever the time.
	Run *Run `json:"run,omitempty"`
	// Usual is what ExpectedEnd is calculated from; absent when no run of the history
	// says how long a host takes.
	Usual *Usual `json:"usual,omitempty"`
	// Fits tells whether each host is expected to be done by not-after; absent when
	// that is unknown.
	Fits *bool `json:"fits,omitempty"`
	// Offers are what the hosts of the run say that they would change, in the order of
	// the run; each host is named, also one that has told nothing.
	Offers []HostOffer `json:"offers,omitempty"`
	// Missing is what hosts lack for the run, as their workers say.
	Missing []Missing `json:"missing,omitempty"`
	// Unknown are the hosts whose workers do not say which scripts they have, though
	// the run starts some.
	Unknown []string `json:"unknown,omitempty"`
}

// HostOffer is what a host says that its upgrade would change.
type HostOffer struct {
	Hostname string `json:"hostname"`
	OfferSummary
}

// Usual is how long the work of a run took before.
type Usual struct {
	// Run is the run that it was measured in.
	Run uint64 `json:"run"`
	// PrepareSeconds is of all hosts together, HostSeconds of one host: nine in ten
	// were not slower.
	PrepareSeconds int `json:"prepare-seconds"`
	HostSeconds    int `json:"host-seconds"`
}

// Missing is what a host lacks for a run.
type Missing struct {
	// Host is empty for the site itself.
	Host string `json:"host,omitempty"`
	// What says it in words.
	What []string `json:"what"`
}
