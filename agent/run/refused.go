package run

import "errors"

// Errors about runs on which somebody decides.
var (
	// ErrNotReady means that the controller is starting or stopping, or does
	// not trust its log; try again later.
	ErrNotReady = errors.New("the controller is not ready")
	// ErrNotConfigured means that the tenant has no os-upgrade configuration.
	ErrNotConfigured = errors.New("there is no os-upgrade configuration")
	// ErrNoRun means that there is no run of that id.
	ErrNoRun = errors.New("there is no such run")
	// ErrNoHost means that no host of that name is known.
	ErrNoHost = errors.New("there is no such host")
)

// Refused means that a request cannot be met as things stand.
type Refused struct {
	Message string
	// Run is the run that stands in the way, or 0.
	Run uint64
}

// Error implements error.
func (r *Refused) Error() string { return r.Message }
