package main

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"regexp"
	"strings"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/client"
)

// cannotCall is how package client begins an error: with the request, which
// means little to who typed a command.
var cannotCall = regexp.MustCompile(`(?s)^cannot ([A-Z]+) (/\S*)(?: any longer)?: (.*)$`)

// flagsForFields are the API's hints in words of the command line.
var flagsForFields = strings.NewReplacer(
	`send "override-window": true with a "reason"`, `use --override-window with --reason`,
)

// explain tells an error to who typed a command: first what is wrong, and the
// request at the end for who looks into it.
func explain(err error) string {
	if refused, ok := errors.AsType[*client.Error](err); ok {
		var messages []string
		for _, one := range refused.Errors {
			messages = append(messages, flagsForFields.Replace(one.Message))
		}
		return fmt.Sprintf("%s (%s %s: %d %s)", strings.Join(messages, "; "),
			refused.Method, refused.Path, refused.Status, http.StatusText(refused.Status))
	}
	call := cannotCall.FindStringSubmatch(err.Error())
	if call == nil {
		return err.Error()
	}
	text := call[3]
	if _, ok := errors.AsType[net.Error](err); ok {
		text = "cannot reach the REST API: " + text
	}
	return fmt.Sprintf("%s (%s %s)", text, call[1], call[2])
}
