package realhost_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/realhost"
)

// userData is what the example has of cloud-init, and nothing else: decoding refuses other keys.
// See the modules "Write Files" and "Runcmd" in the documentation of cloud-init.
type userData struct {
	WriteFiles []struct {
		Path        string `yaml:"path"`
		Owner       string `yaml:"owner"`
		Permissions string `yaml:"permissions"`
		Content     string `yaml:"content"`
	} `yaml:"write_files"`
	RunCmd [][]string `yaml:"runcmd"`
}

// readUserData reads user-data as strictly as cloud-init's schema.
func readUserData(t *testing.T, text string) (u userData) {
	t.Helper()
	if !strings.HasPrefix(text, "#cloud-config\n") {
		t.Fatalf("user-data does not begin with #cloud-config:\n%s", text)
	}
	if left := regexp.MustCompile(`\$\{\w+\}`).FindString(text); left != "" {
		t.Fatalf("user-data still has the placeholder %s", left)
	}
	decoder := yaml.NewDecoder(strings.NewReader(text))
	decoder.KnownFields(true)
	if err := decoder.Decode(&u); err != nil {
		t.Fatalf("user-data: %v", err)
	}
	return u
}

// play does what cloud-init does with user-data: it writes the files, in their order, and then runs
// the commands in one shell script, in which an argument of a list is one word.
func (u userData) play(t *testing.T, c *realhost.Container) {
	t.Helper()
	for _, file := range u.WriteFiles {
		if _, err := strconv.ParseUint(file.Permissions, 8, 32); err != nil || file.Owner == "" {
			t.Fatalf("%s: the permissions are %q, the owner is %q", file.Path, file.Permissions, file.Owner)
		}
		c.Must(fmt.Sprintf("mkdir -p %s && umask 077 && cat >%s <<'END-OF-FILE'\n%sEND-OF-FILE\nchown %s %s && chmod %s %s",
			quoted(filepath.Dir(file.Path)), quoted(file.Path), file.Content, file.Owner, quoted(file.Path), file.Permissions, quoted(file.Path)))
	}
	script := "#!/bin/sh\n"
	for _, command := range u.RunCmd {
		words := make([]string, len(command))
		for i, word := range command {
			words[i] = quoted(word)
		}
		script += strings.Join(words, " ") + "\n"
	}
	c.Must("cat >/root/runcmd <<'END-OF-FILE'\n" + script + "END-OF-FILE\nsh /root/runcmd")
}

// quoted is a word of a shell command, as Python's shlex.quote writes it.
func quoted(word string) string { return "'" + strings.ReplaceAll(word, "'", `'"'"'`) + "'" }

// TestRealCloudInit lets machines join a site with the user-data of the example: one from a package
// that is in its image, one from a package behind a URL. Both wait for approval.
func TestRealCloudInit(t *testing.T) {
	t.Parallel()
	realhost.Need(t, realhost.Hosts, realhost.Bookworm, realhost.Images)
	example, err := os.ReadFile("../../../examples/cloud-init/user-data.yaml")
	if err != nil {
		t.Fatal(err)
	}
	deb, err := os.ReadFile(packages(t)[1])
	if err != nil {
		t.Fatal(err)
	}
	mirror := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(deb))
	}))
	t.Cleanup(mirror.Close)
	site := realhost.NewSite(t)
	local := func(args ...string) string {
		t.Helper()
		out, code := site.Command(append(args, "--data", site.Data(), "--tenant", realhost.Tenant)...)
		if code != 0 {
			t.Fatalf("%q: %s", args, out)
		}
		return strings.TrimSpace(out)
	}
	token := local("credentials", "join-token", "create", "--application", realhost.Application, "--host", "shop-*", "--max-hosts", "2", "--approve", "--label", "shop=basel", "--yes")
	sum := sha256.Sum256(deb)
	const path = "/root/agent.deb"
	sources := map[string]struct {
		tree    realhost.Tree
		address string
	}{
		"shop-1": {realhost.Bookworm, path},
		"shop-2": {realhost.Images, mirror.URL + "/osupgrade-agent_0.2.0_amd64.deb"},
	}
	for host, source := range sources {
		c := realhost.NewContainer(t, realhost.ContainerOptions{Tree: source.tree, Hostname: host, Size: "2g"})
		c.WriteFile(path, string(deb))
		c.Start()
		text := strings.NewReplacer("${package}", source.address, "${sha256}", hex.EncodeToString(sum[:]), "${site}", site.Endpoint, "${token}", token).Replace(string(example))
		readUserData(t, text).play(t, c)
		if left := c.Must("ls -A /run/osupgrade-join; grep -rl osuj_ /etc /usr/local /var/lib/osupgrade-worker 2>/dev/null; systemctl is-active osupgrade-worker"); strings.Contains(left, "token") || !strings.HasSuffix(strings.TrimSpace(left), "active") {
			t.Errorf("%s: the token is still there, or the worker does not run:\n%s", host, left)
		}
	}
	if waiting, code := site.Command("hosts", "--waiting"); code != 0 || strings.Count(waiting, "shop=basel") != 2 {
		t.Errorf("there wait\n%s", waiting)
	}
	for host := range sources {
		local("approve-host", host)
	}
	site.Online("shop-1", "shop-2")
	if hosts, code := site.Command("hosts", "--wide"); code != 0 || strings.Count(hosts, "shop=basel") != 2 {
		t.Errorf("the hosts are\n%s", hosts)
	}
}

// TestUserData checks that the user-data of the example is what the test of it plays.
func TestUserData(t *testing.T) {
	t.Parallel()
	example, err := os.ReadFile("../../../examples/cloud-init/user-data.yaml")
	if err != nil {
		t.Fatal(err)
	}
	filled := regexp.MustCompile(`\$\{\w+\}`).ReplaceAllString(string(example), "value")
	u := readUserData(t, filled)
	if len(u.WriteFiles) != 3 || u.WriteFiles[0].Permissions != "0600" || u.WriteFiles[0].Content != "value\n" || len(u.RunCmd) != 1 || len(u.RunCmd[0]) != 4 {
		t.Errorf("it is %+v", u)
	}
	for _, name := range []string{"package", "sha256", "site", "token"} {
		if !strings.Contains(string(example), "${"+name+"}") {
			t.Errorf("it has no ${%s}", name)
		}
	}
}
