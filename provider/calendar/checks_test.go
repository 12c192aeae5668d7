package calendar_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/fakeapi"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/acctest"
)

// name is the name of the calendar in these tests.
const name = "christmas"

// stored checks that the server has exactly this calendar.
func stored(api *fakeapi.Server, want v1.Calendar) resource.TestCheckFunc {
	return func(*terraform.State) error {
		got, _, ok := api.Calendar(acctest.Tenant, name)
		if !ok {
			return errors.New("the server has no such calendar")
		}
		has, errHas := json.Marshal(got)
		wanted, errWanted := json.Marshal(want)
		if string(has) != string(wanted) || errors.Join(errHas, errWanted) != nil {
			return fmt.Errorf("the server has %s\nwant %s", has, wanted)
		}
		return nil
	}
}

// absent checks that the server has no such calendar.
func absent(api *fakeapi.Server) resource.TestCheckFunc {
	return func(*terraform.State) error {
		if got, _, ok := api.Calendar(acctest.Tenant, name); ok {
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

func emptyPlan() resource.ConfigPlanChecks { return expect(plancheck.ExpectEmptyPlan()) }

func action(a plancheck.ResourceActionType) resource.ConfigPlanChecks {
	return expect(plancheck.ExpectResourceAction(address, a))
}

func expect(checks ...plancheck.PlanCheck) resource.ConfigPlanChecks {
	return resource.ConfigPlanChecks{PreApply: checks}
}
