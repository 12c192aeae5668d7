package cli

import (
	"os"
	"path/filepath"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy/ostree"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy/rauc"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy/sysupdate"
)

// raucOptions are the flags of the strategy rauc.
type raucOptions struct {
	Bundle    string `help:"Where a run without a release finds the newest bundle: an https URL or the path of a file. {compatible} stands for the compatible string of RAUC." env:"OSUPGRADE_RAUC_BUNDLE" placeholder:"URL"`
	CAFile    string `name:"ca-file" help:"Certificates to trust for the server of a bundle, PEM (default: the system's)." type:"path" env:"OSUPGRADE_RAUC_CA_FILE" placeholder:"FILE"`
	AllowHTTP bool   `name:"allow-http" help:"Allow http for the download of a bundle; this machine itself is always allowed." env:"OSUPGRADE_RAUC_ALLOW_HTTP"`
}

func openRAUC(o strategyOptions) (strategy.Strategy, error) {
	s, err := rauc.New(rauc.Options{
		Bundle: o.RAUC.Bundle, CAFile: o.RAUC.CAFile, PlainHTTP: o.RAUC.AllowHTTP,
		StateDir: filepath.Join(o.State, "rauc"),
	})
	if err != nil {
		return nil, err
	}
	return s, nil
}

// ostreeBooted is there on a system that OSTree has started.
const ostreeBooted = "/run/ostree-booted"

func openOSTree(tool ostree.Tool) func(o strategyOptions) (strategy.Strategy, error) {
	return func(o strategyOptions) (strategy.Strategy, error) {
		s, err := ostree.New(ostree.Options{Tool: tool, StateDir: filepath.Join(o.State, string(tool)), Output: os.Stderr})
		if err != nil {
			return nil, err
		}
		return s, nil
	}
}

func openSysupdate(strategyOptions) (strategy.Strategy, error) {
	return sysupdate.New(sysupdate.Options{Output: os.Stderr}), nil
}
