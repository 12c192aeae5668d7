package v1

import "bytes"

// Ways in which a check of a HealthReport comes out.
const (
	HealthPassed = "passed"
	HealthFailed = "failed"
	// HealthWaiting means that its outcome has not come yet.
	HealthWaiting = "waiting"
	// HealthNotAsked means that there is no host on which the check is to be asked.
	HealthNotAsked = "not asked"
)

// HealthReport is how the checks come out that a run is asked before it prepares any host.
type HealthReport struct {
	// ID is that of the request, by which the report can be read again for a while.
	ID int `json:"id"`
	// Environment is the environment whose rollout has the checks.
	Environment string `json:"environment"`
	// OK tells that all have come out and none failed.
	OK bool `json:"ok"`
	// Waiting is how many of Checks have yet to come out; 0 once the report is complete.
	Waiting int `json:"waiting,omitempty"`
	// Checks are the checks in their order, each where it is asked: at the site, or by host.
	Checks []HealthCheck `json:"checks"`
}

// HealthCheck is how one check came out in one place.
type HealthCheck struct {
	// Check is its name.
	Check string `json:"check"`
	// Host is the host on which it is asked; absent at the site, and for a check that no host
	// matches.
	Host string `json:"host,omitempty"`
	// Result is "passed", "failed", "waiting", or "not asked" for a check that no host matches.
	Result string `json:"result"`
	// Text says what failed.
	Text string `json:"text,omitempty"`
}

// Complete reports whether all checks have come out.
func (r HealthReport) Complete() bool { return r.Waiting == 0 }

// AskHealth is the body of POST .../os-upgrade/health.
type AskHealth struct {
	// Environment is the environment whose rollout has the checks; it may be absent while only one
	// has hosts.
	Environment string `json:"environment,omitempty"`
}

// DecodeAskHealth reads the body of a request for the health and validates it, as DecodeOSUpgrade
// does. An empty body is the zero AskHealth.
func DecodeAskHealth(contentType string, body []byte) (AskHealth, error) {
	if len(bytes.TrimSpace(body)) == 0 {
		return AskHealth{}, nil
	}
	return decode(contentType, body, AskHealth{}, AskHealth.Validate)
}

// Validate returns everything that is wrong with the values, and nothing when all is right.
func (a AskHealth) Validate() Problems { return validateEnvironment(a.Environment) }
