package credential_test

import (
	"testing"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/credential"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/credentialtest"
)

// TestFolderConforms checks that a folder is a store as the one in memory is.
func TestFolderConforms(t *testing.T) {
	t.Parallel()
	credentialtest.Conform(t, func(t *testing.T) credential.Store {
		t.Helper()
		f, err := credential.OpenFolder(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		return f
	})
}
