// Calls to the service: with the visitor's token for their own data, else with the key.

const TOKEN = "likeminds-user", KEY = "likeminds-key";

export class Problem extends Error {
  constructor(status, detail) {
    super(detail);
    this.status = status;
  }
}

export const me = {
  get() {
    try { return JSON.parse(localStorage.getItem(TOKEN)); } catch { return null; }
  },
  set(user) {
    if (user) localStorage.setItem(TOKEN, JSON.stringify(user));
    else localStorage.removeItem(TOKEN);
  },
};

export const key = {
  get: () => sessionStorage.getItem(KEY),
  set: (value) => sessionStorage.setItem(KEY, value),
};

async function call(method, path, { body, own = false } = {}) {
  const headers = {};
  const secret = own ? me.get()?.token : key.get();
  if (secret) headers.Authorization = `Bearer ${secret}`;
  if (body !== undefined) headers["Content-Type"] = "application/json";
  let answer;
  try {
    answer = await fetch(path, { method, headers, body: body === undefined ? undefined : JSON.stringify(body) });
  } catch {
    throw new Problem(0, "The service does not answer: check that it is running. Your earlier answers are stored.");
  }
  const said = await answer.json().catch(() => ({}));
  if (!answer.ok) throw new Problem(answer.status, said.detail || `The service answered ${answer.status}.`);
  return said;
}

const query = (given) => new URLSearchParams(Object.entries(given).filter(([, v]) => v !== null && v !== undefined)).toString();

export const get = (path, given = {}, options = {}) => call("GET", `${path}?${query(given)}`, options);
export const post = (path, body, options = {}) => call("POST", path, { ...options, body });
export const remove = (path, options = {}) => call("DELETE", path, options);
export const userPath = (suffix) => `/v1/users/${encodeURIComponent(me.get().user)}/${suffix}`;
export const picture = (item) => `/v1/picture?${query({ item })}`;

// Add a new user, unless this browser has the token of one whom the service knows.
export async function join() {
  if (me.get()) {
    try {
      await get(userPath("labels"), {}, { own: true });
      return;
    } catch (problem) {
      if (![401, 403, 404].includes(problem.status)) throw problem;
    }
  }
  me.set(await post("/v1/newcomers", {}));
}
