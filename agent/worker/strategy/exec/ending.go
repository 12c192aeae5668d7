package exec

import (
	"fmt"
	"os"
	"syscall"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/worker/strategy"
)

// ended tells what the end of a script means, in words when it failed.
func ended(a action, state *os.ProcessState, out *output) (strategy.Outcome, error) {
	where := "output in " + out.log.Name()
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		number := status.Signal()
		return 0, fmt.Errorf("%s was ended by signal %d (%s), %s", a, int(number), number, where)
	}
	status := state.ExitCode()
	result, ok, err := outcome(a, status)
	switch {
	case err != nil:
		return 0, fmt.Errorf("%w, %s", err, where)
	case ok:
		return result, nil
	case out.tail.last == "":
		return 0, fmt.Errorf("%s failed and printed nothing: exit status %d, %s", a, status, where)
	default:
		return 0, fmt.Errorf("%s: exit status %d, %s", out.tail.last, status, where)
	}
}
