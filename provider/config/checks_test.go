package config_test

import (
	"errors"
	"fmt"
	"reflect"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/terraform"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/fakeapi"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/acctest"
)

// stored checks that the server has exactly this configuration.
func stored(api *fakeapi.Server, want v1.OSUpgrade) resource.TestCheckFunc {
	return func(*terraform.State) error {
		got, _, ok := api.Config(acctest.Tenant)
		if !ok {
			return errors.New("the server has no configuration")
		}
		if !reflect.DeepEqual(got, want) {
			return fmt.Errorf("the server has %+v, want %+v", got, want)
		}
		return nil
	}
}

// absent checks that the server has no configuration.
func absent(api *fakeapi.Server) resource.TestCheckFunc {
	return func(*terraform.State) error {
		if got, _, ok := api.Config(acctest.Tenant); ok {
			return fmt.Errorf("the server still has %+v", got)
		}
		return nil
	}
}

// asked checks how many requests of a method the server got for the configuration.
// Requests for the warnings of a plan do not count.
func asked(api *fakeapi.Server, method string, want int) resource.TestCheckFunc {
	return func(*terraform.State) error {
		if got := api.Count(method, "/os-upgrade"); got != want {
			return fmt.Errorf("the server had %d %s, want %d", got, method, want)
		}
		return nil
	}
}

// do is a plan check that calls a function between plan and apply.
type do = acctest.Do
