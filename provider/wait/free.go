package wait

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/hashicorp/terraform-plugin-log/tflog"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/client"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/v1"
)

// InTheWay is the id of the run that an answer names as the reason of a
// refusal, or 0.
func InTheWay(err error) uint64 {
	var answer *client.Error
	if !errors.As(err, &answer) || answer.Status != http.StatusPreconditionFailed {
		return 0
	}
	for _, problem := range answer.Errors {
		if problem.Info.Run != 0 {
			return problem.Info.Run
		}
	}
	return 0
}

// UntilFree returns when the run that stands in the way has ended, or is not
// kept any more.
func UntilFree(ctx context.Context, api API, tenant string, id uint64) error {
	tflog.Info(ctx, fmt.Sprintf("run %d of tenant %s is under way; waiting for its end", id, tenant))
	_, err := ForRun(ctx, api, tenant, id, func(v1.Run) {})
	if err == nil || client.HasStatus(err, http.StatusNotFound) {
		return nil
	}
	return fmt.Errorf("cannot wait for the end of run %d, which is under way: %w", id, err)
}
