package e2e

import (
	"fmt"
	"os"
	"testing"
)

// TestMain starts the programs as they are in service: make test lets the tests themselves
// collect their garbage more seldom, and some tests measure the memory of a program.
func TestMain(m *testing.M) {
	if err := os.Unsetenv("GOGC"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}
