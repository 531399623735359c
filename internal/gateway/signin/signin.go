// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package signin signs people in to the page with OpenID Connect: the authorization code flow with PKCE.
//
// The person's ID token is the token of their requests, so the API server must accept it. It stays, sealed, in cookies
// of the browser, and the gateway keeps nothing. So each gateway with the same keys serves each session. The page asks
// for a new ID token when one has expired, in one tab at a time, so that a refresh token is used once.
//
// A cookie counts only for requests of the page: those with PageHeader, which other origins cannot send, and without
// Authorization.
package signin

import (
	"context"
	"crypto/subtle"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/sync/singleflight"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"parley.dev/parley/internal/gateway/page"
	"parley.dev/parley/internal/gateway/refusal"
	"parley.dev/parley/internal/gateway/rest"
	"parley.dev/parley/internal/gateway/token"
	"parley.dev/parley/internal/kube/apiclient"
	"parley.dev/parley/internal/netguard/httpguard"
	"parley.dev/parley/internal/netguard/limit"
)

// PageHeader is a header of the page's requests.
const PageHeader = "Parley-Page"

// CallbackPath is where the provider sends people back to.
const CallbackPath = page.Path + "callback"

const whoAmIPath = page.Path + "whoami"

const (
	// flowLasts is how long a person may take to sign in.
	flowLasts = 10 * time.Minute
	// refreshBefore is how long before its expiry an ID token is refreshed.
	refreshBefore = time.Minute
	// maxRequests is how many sign-ins are under way at the same time, and how many questions of the page who its
	// reader is: anyone can ask that with any token.
	maxRequests = 32
	// userTimeout bounds a question to the API server whose token it is.
	userTimeout = 10 * time.Second
)

// Options of the sign-in. ClientSecret is empty for a public client.
type Options struct {
	Issuer, ClientID, ClientSecret string
	Scopes                         []string
	// RedirectURL is CallbackPath as browsers reach it.
	RedirectURL string
	// Transport reaches the provider.
	Transport http.RoundTripper
	// Keys seal cookies.
	Keys Keys
	// Callers asks the API server with the tokens of people: see rest.NewClient.
	Callers *apiclient.Client
	// Now returns the current time.
	Now func() time.Time
}

// SignIn signs people in. Nil signs no one in.
type SignIn struct {
	options Options
	client  *http.Client
	// home is the page, as browsers reach it.
	home        string
	provider    atomic.Pointer[provider]
	discovering singleflight.Group
	// requests and questions limit what is under way: questions who someone is, and all else.
	requests, questions limit.Limiter
}

// New makes a SignIn. It does not ask the provider, so that a gateway starts without it.
func New(o Options) (*SignIn, error) {
	redirect, err := url.Parse(o.RedirectURL)
	if err != nil || redirect.Path != CallbackPath || redirect.Scheme != "https" || redirect.RawQuery != "" {
		return nil, fmt.Errorf("the redirect URL must be https://HOST%s, and is %q", CallbackPath, o.RedirectURL)
	}
	if o.ClientID == token.Audience {
		return nil, fmt.Errorf("the client must not be named %s: tokens of this audience can only listen", o.ClientID)
	}
	return &SignIn{options: o, home: strings.TrimSuffix(o.RedirectURL, CallbackPath) + page.Path,
		requests: limit.New(maxRequests), questions: limit.New(maxRequests),
		// A redirect would take the client's secret elsewhere.
		client: &http.Client{Transport: o.Transport, Timeout: providerTimeout, CheckRedirect: httpguard.Stay}}, nil
}

// Login is how the page gets its reader's credentials.
func (s *SignIn) Login() page.Login {
	if s == nil {
		return page.LoginToken
	}
	return page.LoginOIDC
}

// Register serves the sign-in. refused is called with every refusal.
func (s *SignIn) Register(mux *http.ServeMux, refused func(context.Context, *refusal.Error)) {
	if s == nil {
		return
	}
	for pattern, serve := range map[string]func(http.ResponseWriter, *http.Request) *refusal.Error{
		"GET " + page.Path + "login": s.login, "GET " + CallbackPath: s.callback, "GET " + page.Path + "logout": s.logout,
		"POST " + page.Path + "session": s.resume, "GET " + whoAmIPath: s.whoAmI,
	} {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			page.Guard(w.Header())
			w.Header().Set("Cache-Control", "no-store")
			no := s.limited(serve, w, r)
			if no == nil {
				return
			}
			refused(r.Context(), no)
			if r.Header.Get(PageHeader) == "" && r.Method == http.MethodGet && r.URL.Path != whoAmIPath { // A person reads it.
				http.Error(w, fmt.Sprintf("You are not signed in: %s.\n\nTo try again, open %s", no.Message, s.home), no.Status)
				return
			}
			no.Write(w)
		})
	}
}

// limited serves a request, unless too many are under way.
func (s *SignIn) limited(serve func(http.ResponseWriter, *http.Request) *refusal.Error, w http.ResponseWriter,
	r *http.Request) *refusal.Error {
	slots := s.requests
	if r.URL.Path == whoAmIPath {
		slots = s.questions
	}
	if !slots.TryAcquire(1) {
		return &refusal.Error{Status: http.StatusServiceUnavailable, Reason: refusal.GatewayFull, RetryAfter: time.Second,
			Message: "too many people sign in at the same time: try again"}
	}
	defer slots.Release(1)
	return serve(w, r)
}

// Handler serves requests by next; those of the page with the ID token of its cookies as their bearer token.
func (s *SignIn) Handler(next http.Handler,
	refuse func(http.ResponseWriter, *http.Request, *refusal.Error)) http.Handler {
	if s == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ofPage := r.Header.Get(PageHeader) != "" && r.Header.Get("Authorization") == ""
		if ofPage && (r.URL.Path == whoAmIPath || strings.HasPrefix(r.URL.Path, "/v1beta1/")) {
			found, ok := s.kept(r)
			if !ok {
				refuse(w, r, signedOut(r))
				return
			}
			r = r.Clone(r.Context())
			r.Header.Set("Authorization", "Bearer "+found.IDToken)
		}
		next.ServeHTTP(w, r)
	})
}

// login sends a person to the provider.
func (s *SignIn) login(w http.ResponseWriter, r *http.Request) *refusal.Error {
	to, no := s.discover(r.Context())
	if no != nil {
		return no
	}
	f := flow{State: oauth2.GenerateVerifier(), Nonce: oauth2.GenerateVerifier(), Verifier: oauth2.GenerateVerifier(),
		Expires: s.options.Now().Add(flowLasts)}
	if at := r.URL.Query().Get("at"); place.MatchString(at) {
		f.At = at
	}
	sealed := s.options.Keys.seal(flowCookie, f)
	// The provider's redirect comes from another site, so Strict would withhold it.
	http.SetCookie(w, cookie(flowCookie, sealed, http.SameSiteLaxMode, int(flowLasts.Seconds())))
	redirect(w, to.AuthCodeURL(f.State, oauth2.S256ChallengeOption(f.Verifier), oauth2.SetAuthURLParam("nonce", f.Nonce)))
	return nil
}

// place is a place within the page, in a form that leads nowhere else.
var place = regexp.MustCompile(`^#/[\w%/.~!'()*-]{0,1000}$`)

// callback ends a sign-in: it exchanges the code, and the API server must accept the ID token.
func (s *SignIn) callback(w http.ResponseWriter, r *http.Request) *refusal.Error {
	f, no := s.flowOf(r)
	http.SetCookie(w, cookie(flowCookie, "", http.SameSiteLaxMode, -1))
	if no != nil {
		return no
	}
	query := r.URL.Query()
	if refused := query.Get("error"); refused != "" {
		return unauthenticated("the identity provider refuses the sign-in: %.100q %.300q", refused,
			query.Get("error_description"))
	}
	from, no := s.discover(r.Context())
	if no != nil {
		return no
	}
	ctx := context.WithValue(r.Context(), oauth2.HTTPClient, s.client)
	answer, err := from.Exchange(ctx, query.Get("code"), oauth2.VerifierOption(f.Verifier))
	got, no := s.tokens(ctx, from, answer, err, f.Nonce)
	if no != nil {
		return no
	}
	if _, no := s.userOf(ctx, got.IDToken); no != nil {
		return no
	}
	if err := s.keep(w, got); err != nil {
		return &refusal.Error{Status: http.StatusForbidden, Reason: refusal.Forbidden, Message: err.Error()}
	}
	redirect(w, page.Path+f.At)
	return nil
}

// flowOf is the sign-in that a request of the provider's redirect belongs to.
func (s *SignIn) flowOf(r *http.Request) (f flow, no *refusal.Error) {
	c, err := r.Cookie(flowCookie)
	if err == nil && s.options.Keys.open(flowCookie, c.Value, &f) && s.options.Now().Before(f.Expires) &&
		subtle.ConstantTimeCompare([]byte(f.State), []byte(r.URL.Query().Get("state"))) == 1 {
		return f, nil
	}
	return f, &refusal.Error{Status: http.StatusBadRequest, Reason: refusal.BadRequest,
		Message: "this sign-in was not started in this browser, was replaced by another one, or took too long"}
}

// resume answers who has signed in, with a new ID token if the old one has expired or is about to.
func (s *SignIn) resume(w http.ResponseWriter, r *http.Request) *refusal.Error {
	if r.Header.Get(PageHeader) == "" {
		return &refusal.Error{Status: http.StatusForbidden, Reason: refusal.Forbidden,
			Message: "only the page may use its session: send the header " + PageHeader}
	}
	found, ok := s.kept(r)
	if !ok {
		return signedOut(r)
	}
	claims, _ := token.Read(found.IDToken)
	if s.options.Now().Before(claims.Expires.Add(-refreshBefore)) {
		return s.answerUser(w, r, found.IDToken)
	}
	if found.RefreshToken == "" {
		return unauthenticated("the session has expired: sign in again")
	}
	renewed, no := s.refresh(r.Context(), found)
	if no != nil && renewed.RefreshToken == "" {
		return no
	}
	if err := s.keep(w, renewed); err != nil {
		return unauthenticated("%v", err)
	}
	if no != nil {
		return no
	}
	return s.answerUser(w, r, renewed.IDToken)
}

// whoAmI answers who the caller is.
func (s *SignIn) whoAmI(w http.ResponseWriter, r *http.Request) *refusal.Error {
	return s.answerUser(w, r, refusal.BearerToken(r.Header.Get("Authorization")))
}

func (s *SignIn) answerUser(w http.ResponseWriter, r *http.Request, bearer string) *refusal.Error {
	if bearer == "" {
		return signedOut(r)
	}
	user, no := s.userOf(r.Context(), bearer)
	if no != nil {
		return no
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(user) // or the client is gone
	return nil
}

// userOf is the owner of a token. Only the API server knows whether it accepts the token.
func (s *SignIn) userOf(ctx context.Context, bearer string) (apiclient.User, *refusal.Error) {
	ctx, cancel := context.WithTimeout(ctx, userTimeout)
	defer cancel()
	user, err := s.options.Callers.WhoAmI(rest.WithToken(ctx, bearer))
	switch {
	case apierrors.IsUnauthorized(err):
		return user, unauthenticated("the API server does not accept the token: its authentication configuration must have "+
			"the issuer %s with the audience %s, and the token must not have expired", s.options.Issuer, s.options.ClientID)
	case err != nil:
		return user, &refusal.Error{Status: http.StatusServiceUnavailable, Reason: refusal.APIServerUnavailable,
			RetryAfter: time.Second, Message: "the API server does not report who you are: try again", Cause: err}
	}
	return user, nil
}

// logout ends the session in the browser and at the provider. Browsers do not send its cookies from other sites, and
// state from which origin the request comes.
func (s *SignIn) logout(w http.ResponseWriter, r *http.Request) *refusal.Error {
	if !slices.Contains([]string{"", "none", "same-origin"}, r.Header.Get("Sec-Fetch-Site")) {
		return &refusal.Error{Status: http.StatusForbidden, Reason: refusal.Forbidden,
			Message: "a page of another origin may not sign you out"}
	}
	to := ""
	if found, ok := s.kept(r); ok {
		to = s.logoutURL(r.Context(), found)
	}
	dropFrom(w, 0)
	if to == "" {
		to = page.Path
	}
	redirect(w, to)
	return nil
}

// redirect sends the browser to an address as it is: http.Redirect would clean its fragment like a path.
func redirect(w http.ResponseWriter, to string) {
	w.Header().Set("Location", to)
	w.WriteHeader(http.StatusSeeOther)
}

// signedOut is the refusal of a request without a session.
func signedOut(r *http.Request) *refusal.Error {
	if _, err := r.Cookie(piece(0)); err == nil {
		return unauthenticated("the keys of the gateway have changed since you signed in: sign in again")
	}
	return unauthenticated("you are not signed in")
}

func unauthenticated(format string, args ...any) *refusal.Error {
	return &refusal.Error{Status: http.StatusUnauthorized, Reason: refusal.Unauthorized,
		Message: fmt.Sprintf(format, args...)}
}
