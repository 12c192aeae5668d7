package ostree

import (
	"os"
	"testing"
)

// FuzzParseJSON checks that no output of bootc and rpm-ostree is read as a deployment without
// a name or a checksum, and that none makes a decision fail but by an error.
func FuzzParseJSON(f *testing.F) {
	for _, name := range []string{"bootc-status.json", "rpm-ostree-status.json"} {
		printed, err := os.ReadFile("testdata/" + name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(printed))
	}
	f.Add(`{"status":{"booted":{"image":{"imageDigest":"sha256:1"},"ostree":null}}}`)
	f.Add(`{"deployments":[{"osname":"a","checksum":"b","booted":true}],"transaction":["x"]}`)
	f.Fuzz(func(t *testing.T, printed string) {
		var all []deployments
		if status, err := parseBootcStatus(printed); err == nil {
			all = append(all, status.deployments())
		}
		if rpm, made, status, err := parseRPMStatus(printed); err == nil {
			if len(made) != len(rpm) {
				t.Errorf("%d of %d deployments have a checksum", len(made), len(rpm))
			}
			_ = status.busy()
			all = append(all, rpm)
		}
		for _, each := range all {
			for _, d := range each {
				if d.id == "" || d.name == "" {
					t.Errorf("%+v", d)
				}
			}
			now, err := each.Systems()
			if err != nil {
				continue
			}
			_, _, _ = back(each, now.Plan(versionOf("x", three), 0, "", nil))
		}
	})
}
