package cli

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/systemd"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/worker"
)

// supervision is what systemd is told of this process, and what of its files was
// replaced. Without systemd nobody is told, and nothing is watched: nobody would start
// the process anew.
type supervision struct {
	service *systemd.Service
	files   *systemd.Files
	log     *slog.Logger
}

// newSupervision takes note of the program and of other files as they are now.
func newSupervision(log *slog.Logger, files ...string) (*supervision, error) {
	program, err := systemd.Program()
	if err != nil {
		return nil, fmt.Errorf("cannot find out where this program is: %w", err)
	}
	return &supervision{systemd.FromEnvironment(), systemd.NewFiles(append(files, program)...), log}, nil
}

// tell logs what systemd could not be told.
func (s *supervision) tell(err error) {
	if err != nil {
		s.log.Warn("systemd is not told how this process does", "error", err)
	}
}

func (s *supervision) hung(err error) {
	s.log.Error("this process has hung; systemd starts it anew", "error", err)
}

// worker returns what watches over the loop of a worker; nil without systemd. The loop
// promises when it goes round again, and the watchdog is fed for as long as that is to
// come.
func (s *supervision) worker(ctx context.Context) *worker.Supervisor {
	if s.service == nil {
		return nil
	}
	var promised atomic.Pointer[time.Time]
	alive := func(context.Context) error {
		if until := promised.Load(); until != nil && time.Now().After(*until) {
			return fmt.Errorf("the loop of the worker was to go round until %s", until.Format(time.RFC3339))
		}
		return nil
	}
	return &worker.Supervisor{
		Beat: s.service.Beat(),
		Alive: func(until time.Time) {
			if promised.Swap(&until) == nil {
				// It has its journal, and goes on with what it had in hand. It does not wait for
				// the site, which may be gone for long.
				s.tell(s.service.Ready())
				go s.service.Watch(ctx, alive, s.hung)
			}
		},
		Replaced: func() bool { return s.files.Replaced() != "" },
	}
}
