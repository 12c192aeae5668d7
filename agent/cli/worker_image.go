package cli

import (
	"os"
	"path/filepath"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/worker/strategy"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/worker/strategy/ostree"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/worker/strategy/rauc"
)

// raucOptions are the flags of the strategy rauc.
type raucOptions struct {
	Bundle    string `help:"Address of the bundle that strategy rauc installs, https, or the path of a file; {version} stands for --rauc-version, {compatible} for RAUC's name of this kind of machine." env:"OSUPGRADE_RAUC_BUNDLE" placeholder:"URL"`
	Version   string `help:"Version to go to (default: that of the bundle)." env:"OSUPGRADE_RAUC_VERSION"`
	SHA256    string `name:"sha256" help:"Checksum of the bundle, 64 hexadecimal digits; RAUC checks the bundle's signature anyway." env:"OSUPGRADE_RAUC_SHA256"`
	CAFile    string `name:"ca-file" help:"Certificates to trust for the address of the bundle, PEM (default: the system's)." type:"path" env:"OSUPGRADE_RAUC_CA_FILE" placeholder:"FILE"`
	AllowHTTP bool   `name:"allow-http" help:"Fetch the bundle without encryption if its address says http; from this machine itself that is allowed anyway." env:"OSUPGRADE_RAUC_ALLOW_HTTP"`
}

func openRAUC(o strategyOptions) (strategy.Strategy, error) {
	s, err := rauc.New(rauc.Options{
		Bundle: o.RAUC.Bundle, Version: o.RAUC.Version, SHA256: o.RAUC.SHA256, CAFile: o.RAUC.CAFile, PlainHTTP: o.RAUC.AllowHTTP,
		StateDir: filepath.Join(o.State, "rauc"),
	})
	if err != nil {
		return nil, err
	}
	return s, nil
}

// ostreeOptions are the flags of the strategy ostree.
type ostreeOptions struct {
	Ref string `help:"Branch that strategy ostree follows, such as origin:stable (default: the one that the system that runs follows)." env:"OSUPGRADE_OSTREE_REF" placeholder:"REMOTE:BRANCH"`
}

// ostreeBooted is there on a system that OSTree has started.
const ostreeBooted = "/run/ostree-booted"

func openOSTree(tool ostree.Tool) func(o strategyOptions) (strategy.Strategy, error) {
	return func(o strategyOptions) (strategy.Strategy, error) {
		s, err := ostree.New(ostree.Options{Tool: tool, Ref: o.OSTree.Ref, StateDir: filepath.Join(o.State, string(tool)), Output: os.Stderr})
		if err != nil {
			return nil, err
		}
		return s, nil
	}
}
