package environment_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/osupgrade/terraform-provider-osupgrade/provider/acctest"
)

// TestMain removes the provider's binary.
func TestMain(m *testing.M) {
	code := m.Run()
	if err := acctest.Cleanup(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}
