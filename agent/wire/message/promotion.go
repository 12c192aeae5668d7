package message

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/release"
)

// Promotion is how far an environment has come to a release over all its runs (package run/promotion).
// Which of its hosts have the release is not said: each host's own record does.
type Promotion struct {
	// Release is the release to which the environment goes.
	Release release.Ref `json:"release"`
	// Was is the release to which it went before; nil if there is none, or if that was not the last
	// one that its hosts had.
	Was *release.Ref `json:"was,omitempty"`
	// Since is the first run to the release that has touched something, Last the newest one.
	Since uint64 `json:"since"`
	Last  uint64 `json:"last"`
	// Steps are the stages whose steps are done.
	Steps []string `json:"steps,omitempty"`
	// Closed is the point of no return once that has begun.
	Closed *Closed `json:"closed,omitempty"`
	// RolledBack says that the release was rolled back; nil while it was not.
	RolledBack *RolledBackIn `json:"rolled-back,omitempty"`
}

// Closed is a stage that is the point of no return, the run in which it has begun, and when.
type Closed struct {
	Stage string    `json:"stage"`
	Run   uint64    `json:"run"`
	At    time.Time `json:"at"`
}

// RolledBackIn is the last run that has rolled back a release, who has started it, and why.
type RolledBackIn struct {
	Run uint64    `json:"run"`
	At  time.Time `json:"at"`
	By  string    `json:"by,omitempty"`
	Why string    `json:"why,omitempty"`
}

// check tells what is wrong with how far an environment has come.
func (p *Promotion) check() error {
	if p == nil {
		return nil
	}
	if err := p.Release.Check(); err != nil {
		return err
	}
	if p.Was != nil {
		if err := p.Was.Check(); err != nil {
			return fmt.Errorf("was: %w", err)
		}
	}
	switch {
	case p.Was != nil && *p.Was == p.Release:
		return fmt.Errorf("was: %s is the release itself", p.Was.Name)
	case p.Since == 0 || p.Last < p.Since:
		return fmt.Errorf("its runs are %d to %d; the first is to be no later than the last", p.Since, p.Last)
	case slices.Contains(p.Steps, ""):
		return errors.New("steps: a stage has no name")
	}
	return cmp.Or(p.Closed.check(), p.RolledBack.check())
}

func (c *Closed) check() error {
	if c == nil {
		return nil
	}
	return cmp.Or(present("closed.stage", c.Stage != ""), present("closed.run", c.Run != 0), present("closed.at", !c.At.IsZero()))
}

func (b *RolledBackIn) check() error {
	if b == nil {
		return nil
	}
	return cmp.Or(present("rolled-back.run", b.Run != 0), present("rolled-back.at", !b.At.IsZero()))
}

// checkPromotion tells what is wrong with the progress that an event says of its environment.
func checkPromotion(p *Promotion) error {
	if err := p.check(); err != nil {
		return fmt.Errorf("promotion: %w", err)
	}
	return nil
}
