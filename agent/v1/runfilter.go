package v1

import "time"

// The bounds of RunFilter.Limit.
const (
	DefaultRuns = 100
	MaxRuns     = 1000
)

// RunFilter chooses among the runs that are kept; the zero value chooses the
// newest DefaultRuns. Its members are the query parameters of GET .../runs.
type RunFilter struct {
	// Result is that of the runs, Host a member of them; empty is any.
	Result string
	Host   string
	// Since and Until bound when a run was opened: from Since on and before
	// Until. Zero does not bound.
	Since, Until time.Time
	// Limit is how many there are at most, newest first; 0 is DefaultRuns.
	Limit int
}

// Results lists the results of a run.
func Results() []string { return []string{"completed", "partial", "failed", "aborted", "timed-out"} }

// Validate returns everything that is wrong with the values, and nothing when
// all is right.
func (f RunFilter) Validate() Problems {
	var i inspector
	i.option("result", f.Result, Results()...)
	if f.Host != "" && !ValidHost(f.Host) {
		i.wrong("host", f.Host, "is not the name of a host")
	}
	if !f.Since.IsZero() && !f.Until.IsZero() && !f.Since.Before(f.Until) {
		i.wrong("until", f.Until.Format(time.RFC3339Nano), "is not after since")
	}
	i.number("limit", f.Limit, 1, MaxRuns)
	return i.found
}

// Most is the limit that counts.
func (f RunFilter) Most() int {
	if f.Limit == 0 {
		return DefaultRuns
	}
	return f.Limit
}

// Keeps reports whether the filter chooses a run, whatever the limit. The run
// must have its hosts.
func (f RunFilter) Keeps(r Run) bool {
	if f.Result != "" && f.Result != r.Result || r.OpenedAt.Before(f.Since) || !f.Until.IsZero() && !r.OpenedAt.Before(f.Until) {
		return false
	}
	for _, h := range r.Hosts {
		if h.Hostname == f.Host {
			return true
		}
	}
	return f.Host == ""
}
