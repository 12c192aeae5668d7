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
	Bundle    string `help:"Bundle that strategy rauc installs: an https URL or the path of a file. {version} stands for --rauc-version, {compatible} for the compatible string of RAUC." env:"OSUPGRADE_RAUC_BUNDLE" placeholder:"URL"`
	Version   string `help:"Version to upgrade to (default: that of the bundle)." env:"OSUPGRADE_RAUC_VERSION"`
	SHA256    string `name:"sha256" help:"SHA-256 checksum of the bundle, 64 hexadecimal digits; RAUC checks the signature in any case." env:"OSUPGRADE_RAUC_SHA256"`
	CAFile    string `name:"ca-file" help:"Certificates to trust for --rauc-bundle, PEM (default: the system's)." type:"path" env:"OSUPGRADE_RAUC_CA_FILE" placeholder:"FILE"`
	AllowHTTP bool   `name:"allow-http" help:"Allow http in --rauc-bundle; this machine itself is always allowed." env:"OSUPGRADE_RAUC_ALLOW_HTTP"`
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
	Ref string `help:"Branch that strategy ostree follows, such as origin:stable (default: that of the running system)." env:"OSUPGRADE_OSTREE_REF" placeholder:"REMOTE:BRANCH"`
}

// targetOfOSTree is native.target.
func targetOfOSTree(o strategyOptions) string { return o.OSTree.Ref }

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

// sysupdateOptions are the flags of the strategy sysupdate.
type sysupdateOptions struct {
	Version string `help:"Version to upgrade to (default: the newest that the source has)." env:"OSUPGRADE_SYSUPDATE_VERSION"`
}

func openSysupdate(o strategyOptions) (strategy.Strategy, error) {
	s, err := sysupdate.New(sysupdate.Options{Version: o.Sysupdate.Version, Output: os.Stderr})
	if err != nil {
		return nil, err
	}
	return s, nil
}
