package config

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/client"
)

// gone reports whether a failed reading proves that the configuration has been
// removed, rather than that the endpoint, the tenant or the token is wrong
// (terraform.md 5 row 8). A 404 whose words are not our agent's proves it only
// when the tenant's state can be read.
func gone(ctx context.Context, api *client.Client, tenant string, err error) bool {
	var answer *client.Error
	if !client.Missing(err) || !errors.As(err, &answer) {
		return false
	}
	if strings.HasPrefix(answer.Errors[0].Message, fmt.Sprintf("tenant %q has no os-upgrade configuration", tenant)) {
		return true
	}
	_, err = api.State(ctx, tenant, "")
	return err == nil
}
