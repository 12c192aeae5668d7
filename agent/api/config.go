package api

import (
	"context"
	"fmt"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/run"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/v1"
)

// configs are the tenants' os-upgrade configurations, Avassa's object (AV-1).
func (s *server) configs() *object[v1.OSUpgrade] {
	return &object[v1.OSUpgrade]{
		server: s, noun: "os-upgrade configuration",
		read: s.Store.Config, put: s.Store.PutConfig, remove: s.Store.DeleteConfig,
		decode: v1.DecodeOSUpgrade, patch: patchConfig, canonical: v1.OSUpgrade.Canonical,
		inUse: refuseDuringRun,
	}
}

// patchConfig merges a body of PATCH: a list in it replaces the one there, a
// list that is absent stays (AV-4, AV-22).
func patchConfig(now v1.OSUpgrade, contentType string, body []byte) (v1.OSUpgrade, error) {
	change, err := v1.DecodeOSUpgrade(contentType, body)
	if err != nil {
		return v1.OSUpgrade{}, err
	}
	if change.WorkerApplications != nil {
		now.WorkerApplications = change.WorkerApplications
	}
	if change.MaintenanceWindows != nil {
		now.MaintenanceWindows = change.MaintenanceWindows
	}
	return now, nil
}

// refuseDuringRun keeps a configuration in use (AV-5).
func refuseDuringRun(ctx context.Context, controller Controller) error {
	current, err := controller.Current(ctx)
	if err != nil || current == 0 {
		return err
	}
	return &run.Refused{Run: current, Message: fmt.Sprintf("run %d is under way; wait until it ends, or add force=true, which lets the run go on", current)}
}
