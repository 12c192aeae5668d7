package memory_test

import (
	"testing"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/logtest"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/memory"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/storetest"
)

// TestContract checks the log in memory by the contract of all logs.
func TestContract(t *testing.T) {
	t.Parallel()
	logtest.Contract(t, func(*testing.T) logtest.Log { return memory.New() })
}

// TestStoreContract checks the store in memory by the contract of all stores.
func TestStoreContract(t *testing.T) {
	t.Parallel()
	storetest.Contract(t, func(*testing.T) storetest.Store { return memory.NewStore() })
}
