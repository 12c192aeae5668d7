package controller

import (
	"sync"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
)

// letter is the newest that a host has told of itself, and when; a zero time
// means that it has told nothing of the kind.
type letter struct {
	alive      message.Alive
	aliveAt    time.Time
	progress   message.Progress
	progressAt time.Time
	// outcome is of the last task that it has told of; nil for none.
	outcome *message.Outcome
}

// inbox keeps one letter for each host until the loop has time for it. It does
// not grow with what a host sends, and whoever delivers never waits, so that a
// host that floods the site holds up nobody.
type inbox struct {
	mu      sync.Mutex
	letters map[string]letter
	some    chan struct{}
}

func newInbox() *inbox { return &inbox{letters: map[string]letter{}, some: make(chan struct{}, 1)} }

// put adds to a host's letter.
func (i *inbox) put(host string, add func(*letter)) {
	i.mu.Lock()
	l := i.letters[host]
	add(&l)
	i.letters[host] = l
	i.mu.Unlock()
	wake(i.some)
}

// take empties the inbox.
func (i *inbox) take() map[string]letter {
	i.mu.Lock()
	defer i.mu.Unlock()
	letters := i.letters
	i.letters = map[string]letter{}
	return letters
}

// wake tells whoever waits on a channel of capacity 1 that there is something;
// told twice is as good as told once.
func wake(some chan<- struct{}) {
	select {
	case some <- struct{}{}:
	default:
	}
}
