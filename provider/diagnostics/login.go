package diagnostics

import (
	"net/http"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/api/client"
)

// loginAdvice says what to do about a request without a good login.
func loginAdvice(e *client.LoginError) string {
	status := 0
	if e.Answer != nil {
		status = e.Answer.Status
	}
	switch {
	case e.SecondFactor():
		return "A program has no second factor. Use an approle, with role_id and secret_id."
	case e.Useless:
		return "The login had success, but the server does not accept the token that it gave. Something between here and the server may answer in its place or take the header Authorization away; otherwise the user or approle was changed or removed just now."
	case status == http.StatusUnauthorized && e.Approle && e.Again:
		return "The token of the login has ended before the work was done: it reached the last end of its life, or somebody withdrew it. The secret_id lets nobody in again. Use one with more uses, or an approle whose logins last longer (token-ttl, token-max-ttl), and apply again: what is done is in the state."
	case status == http.StatusUnauthorized && e.Approle:
		return "Check role_id and secret_id, or OSUPGRADE_ROLE_ID and OSUPGRADE_SECRET_ID. A secret-id lets in as often as it has uses, and for as long as it is valid: terraform plan takes one use, apply two and destroy three, for each provider block. " +
			"The same is said if the approle was removed. Make another secret-id, such as with osupgrade-agent credentials secret-id --uses 2."
	case status == http.StatusUnauthorized && e.Again:
		return "The token of the login has ended before the work was done, and the user is not let in again: the password was changed, or the user removed. Apply again with the new password: what is done is in the state."
	case status == http.StatusUnauthorized:
		return "Check username and password, or OSUPGRADE_USERNAME and OSUPGRADE_PASSWORD. The same is said if the user was removed, and if several tenants have a user of that name: set login_tenant then. The provider does not try again."
	case status == http.StatusTooManyRequests:
		return "Too many logins have failed from the address of this machine, perhaps by another program or with an old password. Wait until the server hears logins from here again, and correct what fails before you try."
	case status == http.StatusNotFound:
		return "Check the provider's endpoint. A site without users and approles needs a token."
	case status == http.StatusForbidden:
		return "The server does not let this user or approle in, or not from this address."
	case client.Sealed(e):
		return sealed
	case status == http.StatusServiceUnavailable:
		return "The server is not ready, or has too many logins to check at the moment. Try again later."
	case status >= http.StatusInternalServerError:
		return advice(status)
	case status >= http.StatusBadRequest:
		return "Correct what the server names, and plan again."
	}
	return adviceWithoutAnswer(e)
}
