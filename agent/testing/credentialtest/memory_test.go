package credentialtest

import (
	"testing"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/credential"
)

func TestMemory(t *testing.T) {
	t.Parallel()
	Conform(t, func(*testing.T) credential.Store { return &Memory{} })
}
