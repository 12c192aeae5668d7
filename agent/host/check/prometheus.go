package check

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/prometheus"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/script"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/rollout"
)

// Tokens is the folder, in that of the scripts, with the tokens for Prometheus servers. Each file
// is named for the server that it is for, such as "prometheus:443": a tenant chooses the address
// of a check, and could otherwise have a token sent to a server of its own.
const Tokens = "tokens"

// query tries a prometheus check.
func (r *Runner) query(ctx context.Context, c rollout.Check) error {
	client := prometheus.Client{Transport: r.transport(), Token: r.token}
	result, err := client.Query(ctx, c.URL, c.Query)
	if err != nil && ctx.Err() != nil {
		return errNoAnswer
	}
	if err != nil {
		return plain(err)
	}
	return prometheus.Bounds{Below: c.Below.Value(), Above: c.Above.Value()}.Judge(result)
}

// token returns the token for a server; empty when there is none. The error names the server and
// not the folder, because a tenant sees it.
func (r *Runner) token(server string) (string, error) {
	if r.Scripts == "" {
		return "", nil
	}
	path := filepath.Join(r.Scripts, Tokens, server)
	if err := script.CheckSecret(path); errors.Is(err, fs.ErrNotExist) {
		return "", nil
	} else if err != nil {
		return "", fmt.Errorf("the token for %s is not used: %w", server, err)
	}
	token, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("the token for %s cannot be read", server)
	}
	text := strings.TrimSpace(string(token))
	if text == "" || strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
		return "", fmt.Errorf("the token for %s is not used: its file should have one word, the token", server)
	}
	return text, nil
}
