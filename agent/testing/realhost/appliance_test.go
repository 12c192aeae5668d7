package realhost_test

import (
	"fmt"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/realhost"
)

// appliance is a package with a service, a conffile that differs from version to
// version, files, and a postinst that takes a moment.
func appliance(version string) realhost.Deb {
	files := map[string]string{
		"etc/appliance.conf": "setting=" + version + "\n",
		"lib/systemd/system/appliance.service": "[Service]\nExecStart=/bin/sh -c \"echo appliance " + version + "; exec sleep infinity\"\n" +
			"[Install]\nWantedBy=multi-user.target\n",
	}
	for n := range 100 {
		files[fmt.Sprintf("usr/share/appliance/%d", n)] = fmt.Sprintf("%s %d\n", version, n)
	}
	return realhost.Deb{Name: "appliance", Version: version, Files: files, Scripts: map[string]string{
		"postinst": `[ "$1" = configure ] || exit 0; sleep 0.3
if [ -d /run/systemd/system ]; then systemctl daemon-reload; systemctl -q enable appliance; systemctl restart appliance; fi
`,
	}}
}

// kernel is a package that asks for a reboot, as Debian's kernels do where
// unattended-upgrades is installed.
func kernel(version string) realhost.Deb {
	return realhost.Deb{Name: "appliance-kernel", Version: version, Files: map[string]string{"boot/appliance-kernel": version + "\n"}, Scripts: map[string]string{
		"postinst": `[ "$1" = configure ] && [ -n "$2" ] || exit 0; touch /run/reboot-required; echo appliance-kernel >>/run/reboot-required.pkgs
`,
	}}
}

// held is a package that a test puts on hold.
func held(version string) realhost.Deb { return realhost.Deb{Name: "appliance-held", Version: version} }
