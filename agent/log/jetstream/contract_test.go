package jetstream

import (
	"testing"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/logtest"
)

// TestContract checks the log of the embedded server by the contract of all logs.
func TestContract(t *testing.T) {
	t.Parallel()
	logtest.Contract(t, func(t *testing.T) logtest.Log {
		t.Helper()
		return gateLog{newSite(t).log}
	})
}
