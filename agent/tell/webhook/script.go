package webhook

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/script"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/names"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

const (
	// scriptPrefix begins the name of a news script among the webhooks of a tenant. No
	// webhook may have such a name.
	scriptPrefix = "script-"
	// scriptTimeout is how long a script has for news.
	scriptTimeout = 30 * time.Second
	// maxScripts is how many run at once on a site.
	maxScripts = 8
	// tryLater is the exit status of a script that wants to be tried again like a receiver
	// that does not answer (EX_TEMPFAIL of sysexits.h).
	tryLater = 75
)

// errScriptName means that a webhook would have the name of a news script.
var errScriptName = errors.New("names that begin with " + scriptPrefix + " are those of the site's news scripts")

// scriptName is the name of a news script among the webhooks of a tenant.
func scriptName(path string) string { return scriptPrefix + filepath.Base(path) }

// CheckName returns an error if no webhook may have a name.
func CheckName(name string) error {
	if strings.HasPrefix(name, scriptPrefix) {
		return errScriptName
	}
	return nil
}

// Scripts returns the paths of the news scripts in a folder: its executable files. warn is
// told of those whose name cannot be shown.
func Scripts(dir string, warn func(name, why string)) (paths []string, err error) {
	if dir == "" {
		return nil, nil
	}
	if err := script.CheckFolder(dir); err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		info, err := os.Stat(path)
		switch {
		case err != nil, !info.Mode().IsRegular(), info.Mode()&0o111 == 0:
			continue // What a script reads is beside it.
		case !names.Valid(scriptPrefix + e.Name()):
			warn(e.Name(), "a news script is named with a-z, 0-9 and -, and has no extension")
			continue
		}
		paths = append(paths, path)
	}
	return paths, nil
}

// runScript has a script take news once, from its standard input. Its environment has
// nothing of the site's. failed is told how it failed and what it printed last: that is for
// the log of the site alone, since a tenant reads the outcome.
func runScript(ctx context.Context, path string, n v1.News, limit time.Duration, failed func(exit, said string)) Outcome {
	body, err := json.Marshal(n)
	if err != nil {
		return Outcome{Err: err.Error()}
	}
	if err := errors.Join(script.CheckFolder(filepath.Dir(path)), script.CheckFile(path)); err != nil {
		return Outcome{Err: err.Error()}
	}
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	cmd := exec.Command(path) //nolint:noctx // script.Run kills the whole group.
	cmd.Dir = "/"
	cmd.Stdin = bytes.NewReader(append(body, '\n'))
	cmd.Env = script.Environment(os.Getenv, map[string]string{
		"OSUPGRADE_NEWS_ID": n.ID, "OSUPGRADE_NEWS_TYPE": n.Type, "OSUPGRADE_TENANT": n.Data.Tenant,
	})
	line, err := script.Run(limited, cmd)
	switch {
	case err == nil:
		return Outcome{Accepted: true}
	case ctx.Err() != nil:
		return Outcome{Err: ctx.Err().Error()}
	case limited.Err() != nil:
		err = fmt.Errorf("it has not ended within %s, and was killed", limit)
	}
	failed(err.Error(), line)
	refused := cmd.ProcessState != nil && cmd.ProcessState.ExitCode() > 0 && cmd.ProcessState.ExitCode() != tryLater
	return Outcome{Err: "the script failed: " + err.Error() + "; the log of the site has what it printed", Refused: refused}
}
