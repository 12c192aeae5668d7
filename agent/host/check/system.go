package check

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/rollout"
)

// calm tries a check of the load: the average of the last minute, compared with the
// number of processors.
func (r *Runner) calm(c rollout.Check) error {
	path := r.loadavg
	if path == "" {
		path = "/proc/loadavg"
	}
	said, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("cannot read the load: %w", err)
	}
	first, _, _ := strings.Cut(string(said), " ")
	load, err := strconv.ParseFloat(first, 64)
	if err != nil {
		return fmt.Errorf("cannot read the load: %s begins with %.20q, which is not a number", path, first)
	}
	processors := r.processors
	if processors == 0 {
		processors = runtime.NumCPU()
	}
	if percent := 100 * load / float64(processors); percent > float64(c.MaxLoad) {
		return fmt.Errorf("the load of the last minute is %.2f, which is %.0f%% of %d processors; it should be at most %d%%", load, percent, processors, c.MaxLoad)
	}
	return nil
}

// synchronised tries a check of the clock, by what the kernel was told by the program
// that sets it.
func (r *Runner) synchronised(c rollout.Check) error {
	adjtimex := r.adjtimex
	if adjtimex == nil {
		adjtimex = unix.Adjtimex
	}
	var clock unix.Timex // Without a mode it only reads.
	state, err := adjtimex(&clock)
	switch {
	case errors.Is(err, unix.EPERM) || errors.Is(err, unix.ENOSYS):
		return fmt.Errorf("cannot read whether the clock is synchronised: %w; allow the worker adjtimex(2), in a unit without ProtectClock", err)
	case err != nil:
		return fmt.Errorf("cannot read whether the clock is synchronised: %w", err)
	case state == unix.TIME_ERROR || clock.Status&unix.STA_UNSYNC != 0:
		return errors.New("the clock is not synchronised; timedatectl shows by what it should be")
	}
	// Maxerror counts microseconds.
	if off, most := time.Duration(clock.Maxerror)*time.Microsecond, c.MaxError.Duration(); most > 0 && off > most {
		return fmt.Errorf("the clock may be wrong by %s; it should be by at most %s", off, most)
	}
	return nil
}
