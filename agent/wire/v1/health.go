package v1

// Ways in which a check of a HealthReport comes out.
const (
	HealthPassed = "passed"
	HealthFailed = "failed"
	// HealthNotAsked means that there is no host on which the check is to be asked.
	HealthNotAsked = "not asked"
)

// HealthReport is how the checks came out that a run is asked before it prepares any host.
type HealthReport struct {
	// Environment is the environment whose rollout has the checks.
	Environment string `json:"environment"`
	// OK tells that no check failed.
	OK bool `json:"ok"`
	// Checks are the checks in their order, each where it was asked: at the site first, then by
	// host.
	Checks []HealthCheck `json:"checks"`
}

// HealthCheck is how one check came out in one place.
type HealthCheck struct {
	// Check is its name.
	Check string `json:"check"`
	// Host is the host on which it was asked; absent at the site.
	Host string `json:"host,omitempty"`
	// Result is "passed", "failed", or "not asked" for a check that no host matches.
	Result string `json:"result"`
	// Text says what failed.
	Text string `json:"text,omitempty"`
}

// AskHealth is the body of a request for the health.
type AskHealth struct {
	// Environment is the environment whose rollout has the checks; it may be absent while there is
	// only one.
	Environment string `json:"environment,omitempty"`
}
