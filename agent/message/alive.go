package message

import (
	"fmt"
	"time"
)

// Heartbeat is how often a worker says that it is alive, and Silence how long
// none may be heard before its host counts as unreachable.
const (
	Heartbeat = 10 * time.Second
	Silence   = 3 * Heartbeat
)

// Alive is what a worker tells of itself, outside of the log, at its start and
// at every heartbeat.
type Alive struct {
	// Application is the worker application that the host is known under.
	Application string `json:"application"`
	// AgentVersion is the version of the worker's program.
	AgentVersion string `json:"agent-version,omitempty"`
}

// Encode returns the JSON body.
func (a Alive) Encode() []byte { return encode(a) }

// DecodeAlive reads the JSON body.
func DecodeAlive(data []byte) (Alive, error) {
	var alive Alive
	if err := decode(data, &alive); err != nil {
		return Alive{}, fmt.Errorf("cannot read heartbeat: %w", err)
	}
	if alive.Application == "" {
		return Alive{}, fmt.Errorf("cannot read heartbeat: application is empty")
	}
	alive.AgentVersion = CleanText(alive.AgentVersion)
	return alive, nil
}

// Progress is word of how a host's work goes on, for people.
type Progress struct {
	// Run is the run that the work belongs to.
	Run uint64 `json:"run"`
	// Percent is 0 to 100, or negative when unknown.
	Percent int    `json:"percent"`
	Message string `json:"message"`
}

// Encode returns the JSON body.
func (p Progress) Encode() []byte { return encode(p) }

// DecodeProgress reads the JSON body.
func DecodeProgress(data []byte) (Progress, error) {
	var progress Progress
	if err := decode(data, &progress); err != nil {
		return Progress{}, fmt.Errorf("cannot read progress: %w", err)
	}
	progress.Percent = min(progress.Percent, 100)
	progress.Message = CleanText(progress.Message)
	return progress, nil
}
