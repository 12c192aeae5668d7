package program

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/text"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy/remedy"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// Cause is what a program prints about one kind of failure.
type Cause struct {
	Class   message.Class
	Printed func() *regexp.Regexp
	// Advice is what a person can do.
	Advice remedy.Remedy
}

// Prints returns a cause by the pattern of what is printed about it.
func Prints(class message.Class, pattern string, advice remedy.Remedy) Cause {
	return Cause{Class: class, Printed: text.Pattern(pattern), Advice: advice}
}

// Causes are tried in their order: one failure prints what belongs to several, and a lock
// or a full disk is the reason of what is printed after it.
type Causes []Cause

// Find returns the class and the advice of a failure; what is known of none has the class
// install.
func (all Causes) Find(printed string) (message.Class, remedy.Remedy) {
	for _, c := range all {
		if c.Printed().MatchString(printed) {
			return c.Class, c.Advice
		}
	}
	return message.Install, ""
}

// MaxSaid bounds what of the output of a program is in an error, in bytes.
const MaxSaid = 600

// Failure is the error of a program that ended with an exit status other than 0. said are
// the lines of its output that tell why.
func (all Causes) Failure(what string, ended Ended, said []string) error {
	class, advice := all.Find(ended.Printed)
	why := strings.Join(said, "; ")
	if why == "" {
		why = "it printed no reason"
	}
	return strategy.Fail(class, failed{fmt.Sprintf("%s: %s (exit status %d)", what, text.Fit(why, MaxSaid, "..."), ended.Exit), advice})
}

// failed is the error of a program.
type failed struct {
	said   string
	advice remedy.Remedy
}

func (f failed) Error() string {
	if f.advice == "" {
		return f.said
	}
	return fmt.Sprintf("%s; %s", f.said, f.advice)
}

// Said returns what a program said when it failed, for an error that has its own remedy. The
// advice about a failure that passes stays: the other remedy needs it, too.
func Said(err error) string {
	if f, ok := errors.AsType[failed](err); ok && !strategy.ClassOf(err).Passes() {
		return f.said
	}
	return err.Error()
}
