package singleton

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/client"
)

// gone reports whether a failed reading proves that the object has been
// removed, rather than that the endpoint, the tenant or the token is wrong
// (terraform.md 5 row 8). A 404 whose words are not our agent's proves it only
// when the tenant's state can be read.
func (k Kind[T]) gone(ctx context.Context, api *client.Client, at Place, err error) bool {
	var answer *client.Error
	if !client.Missing(err) || !errors.As(err, &answer) {
		return false
	}
	if strings.HasPrefix(answer.Errors[0].Message, fmt.Sprintf(k.Absent, at.Tenant)) {
		return true
	}
	_, err = api.State(ctx, at.Tenant, "")
	return err == nil
}
