package rollout_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/terraform"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/fakeapi"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/acctest"
)

// stored checks that the server has exactly this rollout.
func stored(api *fakeapi.Server, want v1.Rollout) resource.TestCheckFunc {
	return func(*terraform.State) error {
		got, _, ok := api.Rollout(acctest.Tenant)
		if !ok {
			return errors.New("the server has no rollout")
		}
		if has, wanted := text(got), text(want); has != wanted {
			return fmt.Errorf("the server has %s\nwant %s", has, wanted)
		}
		return nil
	}
}

// text returns a rollout in JSON.
func text(r v1.Rollout) string {
	b, err := json.Marshal(r)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// absent checks that the server has no rollout.
func absent(api *fakeapi.Server) resource.TestCheckFunc {
	return func(*terraform.State) error {
		if got, _, ok := api.Rollout(acctest.Tenant); ok {
			return fmt.Errorf("the server still has %+v", got)
		}
		return nil
	}
}

// writes checks how many PUTs the server had.
func writes(api *fakeapi.Server, want int) resource.TestCheckFunc {
	return func(*terraform.State) error {
		if got := api.Count(http.MethodPut, ""); got != want {
			return fmt.Errorf("the server had %d PUT, want %d", got, want)
		}
		return nil
	}
}

// do is a plan check that calls a function between plan and apply.
type do = acctest.Do
