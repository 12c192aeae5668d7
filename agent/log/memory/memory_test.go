package memory_test

import (
	"testing"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/logtest"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/memory"
)

// TestContract checks the log in memory by the contract of all logs.
func TestContract(t *testing.T) {
	t.Parallel()
	logtest.Contract(t, func(*testing.T) logtest.Log { return memory.New() })
}
