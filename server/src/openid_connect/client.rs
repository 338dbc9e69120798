//! The client of a provider: builds authorization URLs, exchanges codes and verifies ID tokens.

use openidconnect::core::{
    CoreAuthDisplay, CoreAuthPrompt, CoreAuthenticationFlow, CoreClientAuthMethod,
    CoreErrorResponseType, CoreGenderClaim, CoreJsonWebKey, CoreJweContentEncryptionAlgorithm,
    CoreJwsSigningAlgorithm, CoreProviderMetadata, CoreRevocableToken, CoreRevocationErrorResponse,
    CoreTokenIntrospectionResponse, CoreTokenType,
};
use openidconnect::http::HeaderValue;
use openidconnect::{
    AuthType, AuthorizationCode, Client, ClientId, ClientSecret, CsrfToken, EmptyExtraTokenFields,
    EndpointMaybeSet, EndpointNotSet, EndpointSet, IdTokenFields, Nonce, OAuth2TokenResponse,
    PkceCodeChallenge, PkceCodeVerifier, RedirectUrl, Scope, StandardErrorResponse,
    StandardTokenResponse, TokenResponse, UserInfoClaims,
};
use openidconnect::{ClaimsVerificationError, IdTokenClaims, SignatureVerificationError};
use reqwest::Url;
use unjank_database::ProviderEmail;
use unjank_foundation::clock::UnixTime;

use super::attempt::Attempt;
use super::claims::{Claims, OtherClaims};
use super::http_client::{HttpClient, is_safe, unreachable};
use super::{CALLBACK, OidcError, ProviderSettings};

type Tokens = StandardTokenResponse<
    IdTokenFields<
        OtherClaims,
        EmptyExtraTokenFields,
        CoreGenderClaim,
        CoreJweContentEncryptionAlgorithm,
        CoreJwsSigningAlgorithm,
    >,
    CoreTokenType,
>;

type OidcClient = Client<
    OtherClaims,
    CoreAuthDisplay,
    CoreGenderClaim,
    CoreJweContentEncryptionAlgorithm,
    CoreJsonWebKey,
    CoreAuthPrompt,
    StandardErrorResponse<CoreErrorResponseType>,
    Tokens,
    CoreTokenIntrospectionResponse,
    CoreRevocableToken,
    CoreRevocationErrorResponse,
    EndpointSet,
    EndpointNotSet,
    EndpointNotSet,
    EndpointNotSet,
    EndpointMaybeSet,
    EndpointMaybeSet,
>;

/// The accepted algorithms: signatures with the provider's private key. HMAC is excluded, because the client secret
/// could then forge tokens.
const SIGNATURES: [CoreJwsSigningAlgorithm; 9] = [
    CoreJwsSigningAlgorithm::RsaSsaPkcs1V15Sha256,
    CoreJwsSigningAlgorithm::RsaSsaPkcs1V15Sha384,
    CoreJwsSigningAlgorithm::RsaSsaPkcs1V15Sha512,
    CoreJwsSigningAlgorithm::RsaSsaPssSha256,
    CoreJwsSigningAlgorithm::RsaSsaPssSha384,
    CoreJwsSigningAlgorithm::RsaSsaPssSha512,
    CoreJwsSigningAlgorithm::EcdsaP256Sha256,
    CoreJwsSigningAlgorithm::EcdsaP384Sha384,
    CoreJwsSigningAlgorithm::EdDsa,
];

/// A person authenticated by the provider.
pub(super) struct Confirmed {
    pub(super) subject: String,
    pub(super) email: ProviderEmail,
    pub(super) name: String,
    /// The values of the claim from which roles are mapped.
    pub(super) roles: Vec<String>,
}

fn client(
    metadata: &CoreProviderMetadata,
    settings: &ProviderSettings,
) -> Result<OidcClient, OidcError> {
    let secret = settings.client_secret.as_ref();
    let secret = secret.map(|secret| ClientSecret::new(secret.reveal().to_owned()));
    let id = ClientId::new(settings.client_id.clone());
    let public = settings.public_url.as_str().trim_end_matches('/');
    let redirect = RedirectUrl::new(format!("{public}{CALLBACK}"));
    let redirect = redirect.map_err(|error| OidcError::Invalid(error.to_string()))?;
    let client = OidcClient::from_provider_metadata(metadata.clone(), id, secret);
    Ok(client
        .set_redirect_uri(redirect)
        .set_auth_type(auth_type(metadata)))
}

/// Returns how to send the client secret: in the body if the provider supports only that, otherwise in the header.
fn auth_type(metadata: &CoreProviderMetadata) -> AuthType {
    let methods = metadata.token_endpoint_auth_methods_supported();
    let has = |method| methods.is_some_and(|methods| methods.contains(&method));
    if has(CoreClientAuthMethod::ClientSecretPost) && !has(CoreClientAuthMethod::ClientSecretBasic)
    {
        AuthType::RequestBody
    } else {
        AuthType::BasicAuth
    }
}

/// Returns the URL to send a browser to, and the attempt that it must send back.
pub(super) fn authorize(
    metadata: &CoreProviderMetadata,
    settings: &ProviderSettings,
    wanted: String,
    now: UnixTime,
) -> Result<(Url, Attempt), OidcError> {
    if !is_safe(metadata.authorization_endpoint().url()) {
        let fault = "its authorization endpoint is not an https:// URL";
        return Err(OidcError::Invalid(fault.to_owned()));
    }
    let client = client(metadata, settings)?;
    let (challenge, verifier) = PkceCodeChallenge::new_random_sha256();
    let scopes = settings.scopes.iter().filter(|scope| *scope != "openid");
    let (url, state, nonce) = client
        .authorize_url(
            CoreAuthenticationFlow::AuthorizationCode,
            CsrfToken::new_random,
            Nonce::new_random,
        )
        .add_scopes(scopes.cloned().map(Scope::new))
        .set_pkce_challenge(challenge)
        .url();
    let attempt = Attempt {
        state: state.into_secret(),
        nonce: nonce.secret().clone(),
        verifier: verifier.into_secret(),
        wanted,
        started_at: now,
    };
    Ok((url, attempt))
}

/// Exchanges a code for tokens. A code is single-use.
pub(super) async fn exchange(
    metadata: &CoreProviderMetadata,
    settings: &ProviderSettings,
    http: &HttpClient,
    attempt: &Attempt,
    code: &str,
) -> Result<Tokens, OidcError> {
    let client = client(metadata, settings)?;
    let request = client.exchange_code(AuthorizationCode::new(code.to_owned()));
    let request = request.map_err(|error| OidcError::Invalid(error.to_string()))?;
    let verifier = PkceCodeVerifier::new(attempt.verifier.clone());
    let tokens = request
        .set_pkce_verifier(verifier)
        .request_async(http)
        .await;
    tokens.map_err(|error| match error {
        openidconnect::RequestTokenError::Request(error) => unreachable(&error),
        openidconnect::RequestTokenError::ServerResponse(answer) => {
            OidcError::Invalid(format!("the code was rejected: {answer}"))
        }
        // The response is not quoted, because it may contain tokens.
        openidconnect::RequestTokenError::Parse(error, _) => OidcError::Invalid(format!(
            "cannot parse its token response at `{}`",
            error.path()
        )),
        openidconnect::RequestTokenError::Other(error) => OidcError::Invalid(error),
    })
}

/// Why an ID token is rejected.
pub(super) enum IdTokenFault {
    /// The key is unknown. The provider may have new keys.
    UnknownKey,
    Invalid(OidcError),
}

/// Verifies the ID token: signature, issuer, audience, expiry and nonce.
pub(super) fn verify(
    metadata: &CoreProviderMetadata,
    settings: &ProviderSettings,
    tokens: &Tokens,
    attempt: &Attempt,
    now: UnixTime,
) -> Result<(String, Claims), IdTokenFault> {
    let invalid = |text: String| IdTokenFault::Invalid(OidcError::Invalid(text));
    let client = client(metadata, settings).map_err(IdTokenFault::Invalid)?;
    let token = tokens.id_token();
    let token = token.ok_or_else(|| invalid("the ID token is missing".to_owned()))?;
    let offered = metadata.id_token_signing_alg_values_supported();
    let algorithms = SIGNATURES.into_iter().filter(|one| offered.contains(one));
    let time = chrono::DateTime::from_timestamp_micros(now.as_micros()).unwrap_or_default();
    let verifier = client
        .id_token_verifier()
        .set_allowed_algs(algorithms)
        .set_time_fn(move || time);
    let nonce = Nonce::new(attempt.nonce.clone());
    let verified: Result<&IdTokenClaims<OtherClaims, CoreGenderClaim>, _> =
        token.claims(&verifier, &nonce);
    match verified {
        Ok(claims) => Ok((claims.subject().to_string(), Claims::new(claims))),
        Err(ClaimsVerificationError::SignatureVerification(
            SignatureVerificationError::NoMatchingKey,
        )) => Err(IdTokenFault::UnknownKey),
        Err(ClaimsVerificationError::SignatureVerification(error)) => Err(invalid(format!(
            "cannot verify the signature of the ID token: {error}"
        ))),
        Err(error) => Err(invalid(format!("cannot verify the ID token: {error}"))),
    }
}

/// Adds the user info to the claims of the ID token if any are missing.
pub(super) async fn complete(
    (metadata, settings): (&CoreProviderMetadata, &ProviderSettings),
    http: &HttpClient,
    tokens: &Tokens,
    (subject, claims): (String, Claims),
) -> Result<Confirmed, OidcError> {
    let roles_claim = match settings.roles.is_empty() {
        true => "",
        false => settings.roles_claim.as_str(),
    };
    let mut claims = claims;
    if claims.lacks(roles_claim) && metadata.userinfo_endpoint().is_some() {
        claims = claims.or(user_info(metadata, settings, http, tokens, &subject).await?);
    }
    Ok(Confirmed {
        email: claims.email(),
        name: claims.name(),
        roles: claims.values(roles_claim),
        subject,
    })
}

async fn user_info(
    metadata: &CoreProviderMetadata,
    settings: &ProviderSettings,
    http: &HttpClient,
    tokens: &Tokens,
    subject: &str,
) -> Result<Claims, OidcError> {
    let invalid = |text: &str| OidcError::Invalid(format!("user info: {text}"));
    let token = tokens.access_token().clone();
    // The library expects a token that is a valid header value.
    if HeaderValue::from_str(token.secret()).is_err() {
        return Err(invalid("the access token contains control characters"));
    }
    let client = client(metadata, settings)?;
    let subject = openidconnect::SubjectIdentifier::new(subject.to_owned());
    let request = client.user_info(token, Some(subject));
    let request = request.map_err(|error| OidcError::Invalid(error.to_string()))?;
    let answer: Result<UserInfoClaims<OtherClaims, CoreGenderClaim>, _> =
        request.request_async(http).await;
    match answer {
        Ok(claims) => Ok(Claims::new(&claims)),
        Err(openidconnect::UserInfoError::Request(error)) => Err(unreachable(&error)),
        Err(openidconnect::UserInfoError::Response(status, ..)) => {
            Err(invalid(&format!("the response has status {status}")))
        }
        // These errors are not quoted, because they may contain personal data from the response.
        Err(openidconnect::UserInfoError::ClaimsVerification(_)) => {
            Err(invalid("it belongs to another account"))
        }
        Err(_) => Err(invalid("the response does not parse")),
    }
}
