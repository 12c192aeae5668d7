package program

import (
	"testing"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// TestPatternsWait checks that a pattern is compiled when it is needed first: those of all
// package managers are part of each command, of which most need none.
func TestPatternsWait(t *testing.T) {
	t.Parallel()
	cause := Prints(message.Install, `(`, "") // It cannot be compiled.
	defer func() {
		if recover() == nil {
			t.Error("the pattern was never compiled")
		}
	}()
	cause.Printed()
}
