package exec

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/script"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/worker/strategy"
)

// lockFD is the descriptor at which a script inherits the lock: a single digit,
// so that every shell can close it, and out of the way of the first few, which
// scripts like to use.
const lockFD = 8

var variablePattern = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// own are the variables that tell a script of its job.
var own = []string{"OSUPGRADE_ACTION", "OSUPGRADE_TENANT", "OSUPGRADE_HOST", "OSUPGRADE_RUN", "OSUPGRADE_LOCK_FD"}

// environment is what every script gets. A value is never shown in an error: it
// may be a secret.
func environment(extra map[string]string, getenv func(string) string) ([]string, error) {
	for _, name := range slices.Sorted(maps.Keys(extra)) {
		switch {
		case !variablePattern.MatchString(name):
			return nil, fmt.Errorf("environment variable %q: a name is letters, digits and underscores, and does not begin with a digit", name)
		case slices.Contains(own, name):
			return nil, fmt.Errorf("environment variable %q tells a script of its job; use another name", name)
		case strings.ContainsRune(extra[name], 0):
			return nil, fmt.Errorf("environment variable %q has a NUL in its value, which no environment can hold", name)
		}
	}
	return script.Environment(getenv, extra), nil
}

// jobEnvironment is what one script gets on top. What does not apply is absent.
func jobEnvironment(a action, job strategy.Job) []string {
	env := []string{"OSUPGRADE_ACTION=" + string(a), "OSUPGRADE_LOCK_FD=" + strconv.Itoa(lockFD)}
	if job.Tenant != "" {
		env = append(env, "OSUPGRADE_TENANT="+job.Tenant)
	}
	if job.Host != "" {
		env = append(env, "OSUPGRADE_HOST="+job.Host)
	}
	if job.Run != 0 {
		env = append(env, "OSUPGRADE_RUN="+strconv.FormatUint(job.Run, 10))
	}
	return env
}
