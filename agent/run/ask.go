package run

// Ask is what somebody asks of the run under way: the last word of the path
// of the request.
type Ask string

// What can be asked.
const (
	// Pause holds the run up, Resume lets it go on.
	Pause  Ask = "pause"
	Resume Ask = "resume"
	// Abort ends the run.
	Abort Ask = "abort"
	// Approve lets a stage begin that waits for it.
	Approve Ask = "approve"
	// Release frees the slot of a host by force.
	Release Ask = "release"
)
