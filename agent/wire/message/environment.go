package message

import (
	"fmt"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/names"
)

// DefaultEnvironment is the environment of all hosts that no other has. On the log its name
// is empty, so that a tenant without environments writes what it always wrote.
const DefaultEnvironment = "default"

// checkEnvironment tells what is wrong with the name of an environment on the log.
func checkEnvironment(name string) error {
	switch {
	case name == "":
		return nil
	case name == DefaultEnvironment:
		return fmt.Errorf("environment is %q: on the log the default environment has no name", name)
	case !names.Valid(name):
		return fmt.Errorf("environment %q is not a name: %s", name, names.Form)
	}
	return nil
}
