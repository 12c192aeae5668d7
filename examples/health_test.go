package examples_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// certificate writes a certificate that is valid for so long.
func certificate(t *testing.T, path string, valid time.Duration) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(valid)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestHealthScripts runs the scripts that check a host where all is well and where it is not. The
// error is what a script prints, and begins with a folder of the test.
func TestHealthScripts(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("openssl"); err != nil {
		t.Skip("openssl is not there")
	}
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	for _, folder := range []string{"certs", "soon", "none"} {
		if err := os.Mkdir(at(folder), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	certificate(t, at("certs/a.pem"), 90*24*time.Hour)
	certificate(t, at("soon/a.crt"), 10*24*time.Hour)
	mounts := "/dev/sda1 /boot ext4 rw 0 0\n/dev/sda2 / ext4 rw,relatime 0 0\n/dev/sdb1 " + dir + " ext4 rw 0 0\n/dev/sdb2 /ro ext4 relatime,ro 0 0\n"
	for name, body := range map[string]string{"garbage.pem": "x", "mounts": mounts} {
		if err := os.WriteFile(at(name), []byte(body), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("/dev/sda2", at("by-path")); err != nil {
		t.Fatal(err)
	}
	const far = "999999999"
	for name, row := range map[string]struct {
		script string
		want   string
	}{
		"space":                     {"disk-space.sh 0 " + dir + " /", ""},
		"no space":                  {"disk-space.sh " + far + " " + dir, " MB free, and needs " + far},
		"space of nothing":          {"disk-space.sh 0 " + at("nothing"), "cannot tell how much of " + at("nothing") + " is free"},
		"no path":                   {"disk-space.sh 0", "give at least one path"},
		"certificates":              {"certificates.sh 30 " + at("certs") + " " + at("certs/a.pem"), ""},
		"a certificate expires":     {"certificates.sh 30 " + at("certs") + " " + at("soon"), "which is less than 30 days"},
		"not a certificate":         {"certificates.sh 30 " + at("garbage.pem"), "garbage.pem is not a certificate in PEM"},
		"a folder without any":      {"certificates.sh 30 " + at("none"), "none has no file *.pem or *.crt"},
		"a backup partition":        {"backup-partition.sh " + dir + " 0 " + at("mounts"), ""},
		"a full one":                {"backup-partition.sh " + dir + " " + far + " " + at("mounts"), " MB free, and needs " + far},
		"one that is read-only":     {"backup-partition.sh /ro 0 " + at("mounts"), "/ro is mounted read-only"},
		"one that is not mounted":   {"backup-partition.sh " + at("certs") + " 0 " + at("mounts"), "nothing is mounted at " + at("certs")},
		"the boot device":           {"boot-device.sh / /dev/sda2 -m " + at("mounts"), ""},
		"the boot device by a link": {"boot-device.sh / /dev/sdz " + at("by-path") + " -m " + at("mounts"), ""},
		"another boot device":       {"boot-device.sh /boot /dev/sda2 -m " + at("mounts"), "/boot is on /dev/sda1, and should be on /dev/sda2"},
		"no mount":                  {"boot-device.sh /efi /dev/sda2 -m " + at("mounts"), "nothing is mounted at /efi"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			words := strings.Fields(row.script)
			out, err := exec.CommandContext(t.Context(), filepath.Join("health", words[0]), words[1:]...).CombinedOutput()
			lines := strings.Split(strings.TrimSpace(string(out)), "\n")
			if last := lines[len(lines)-1]; (err == nil) != (row.want == "") || !strings.Contains(last, row.want) {
				t.Errorf("%s: %v, it printed %q, want %q", row.script, err, out, row.want)
			}
		})
	}
}
