BEGIN TRANSACTION;
CREATE TABLE archive (                   
  file_id    INTEGER PRIMARY KEY,
  run_id     INTEGER NOT NULL,
  token      INTEGER NOT NULL,
  name       TEXT NOT NULL UNIQUE,
  length     INTEGER NOT NULL
);
INSERT INTO "archive" VALUES(1,1,1,'run0000-t000001-00001.warc.gz',4290);
CREATE TABLE checkpoint (
  number     INTEGER PRIMARY KEY,        
  run_id     INTEGER NOT NULL,
  seq        INTEGER NOT NULL,
  type       TEXT NOT NULL,              
  state      TEXT NOT NULL,              
  substate   TEXT NOT NULL,              
  created_ms INTEGER NOT NULL,
  totals     TEXT NOT NULL,              
  deleted    INTEGER NOT NULL DEFAULT 0  
);
INSERT INTO "checkpoint" VALUES(0,1,5,'auto','crawling','downloading_pages',1795069585207,'{"known": 11, "pending": 8, "pages": 2, "duplicates": 0, "unchanged": 0, "resources": 0, "redirects": 0, "failed": 0, "refused": 1, "requests": 3, "size": 260, "new": 0, "modified": 0, "deleted": 0, "unknown": 0, "saved": 0, "disturbed": "disturbed at 4 by http_5xx"}',0);
INSERT INTO "checkpoint" VALUES(1,1,8,'auto','crawling','downloading_pages',1795069585207,'{"known": 11, "pending": 5, "pages": 3, "duplicates": 1, "unchanged": 0, "resources": 0, "redirects": 1, "failed": 0, "refused": 1, "requests": 6, "size": 311, "new": 0, "modified": 0, "deleted": 0, "unknown": 0, "saved": 0, "disturbed": "disturbed at 4 by http_5xx"}',0);
INSERT INTO "checkpoint" VALUES(2,1,10,'pause','crawling','downloading_pages',1795069585235,'{"known": 11, "pending": 3, "pages": 3, "duplicates": 1, "unchanged": 0, "resources": 0, "redirects": 1, "failed": 1, "refused": 2, "requests": 7, "size": 320, "new": 0, "modified": 0, "deleted": 0, "unknown": 0, "saved": 0, "disturbed": "disturbed at 4 by http_5xx"}',0);
CREATE TABLE cookie (
  run_id     INTEGER NOT NULL,
  domain     TEXT NOT NULL,
  path       TEXT NOT NULL,
  name       TEXT NOT NULL,
  host_only  INTEGER NOT NULL,
  seq        INTEGER NOT NULL,           
  idx        INTEGER NOT NULL,           
  value      TEXT NOT NULL,
  secure     INTEGER NOT NULL,
  expires_ms INTEGER NOT NULL,           
  PRIMARY KEY (run_id, domain, path, name, host_only, seq)
) WITHOUT ROWID;
CREATE TABLE distrust (                  
  run_id     INTEGER NOT NULL,
  host_id    INTEGER NOT NULL,           
  validator  TEXT NOT NULL,              
  seq        INTEGER NOT NULL,           
  why        TEXT NOT NULL,              
  PRIMARY KEY (run_id, host_id, validator)
) WITHOUT ROWID;
CREATE TABLE frontier (                  
  run_id     INTEGER NOT NULL,
  url_id     INTEGER NOT NULL,
  state      TEXT NOT NULL,              
  reason     TEXT,                       
  kind       TEXT NOT NULL,              
  source     TEXT NOT NULL,
  seed       INTEGER NOT NULL,
  depth      INTEGER NOT NULL,
  hops       INTEGER NOT NULL,
  lane       INTEGER NOT NULL,
  found      INTEGER NOT NULL,           
  found_on   INTEGER,                    
  lastmod    TEXT,                       
  place_seq  INTEGER NOT NULL,           
  place_idx  INTEGER NOT NULL,
  request_url TEXT,                      
  attempts   INTEGER NOT NULL DEFAULT 0,
  not_before_ms INTEGER NOT NULL DEFAULT 0,
  chain      INTEGER NOT NULL DEFAULT 0, 
  tried      TEXT,                       
  done       INTEGER, unlinked INTEGER NOT NULL DEFAULT 0, rank INTEGER,                    
  PRIMARY KEY (run_id, url_id)
) WITHOUT ROWID;
INSERT INTO "frontier" VALUES(1,1,'done',NULL,'page','initial',0,0,0,1,0,NULL,NULL,0,0,NULL,0,0,0,NULL,2,0,NULL);
INSERT INTO "frontier" VALUES(1,2,'done',NULL,'robots','initial',0,0,0,1,0,NULL,NULL,0,-1,'http://127.0.0.1:8765/robots.txt',0,0,0,NULL,1,0,NULL);
INSERT INTO "frontier" VALUES(1,3,'done',NULL,'sitemap','sitemap',0,0,0,1,1,2,NULL,1,0,'http://127.0.0.1:8765/sitemap.xml',0,0,0,NULL,3,0,NULL);
INSERT INTO "frontier" VALUES(1,4,'pending',NULL,'page','spider',0,1,0,1,2,1,NULL,4,0,NULL,1,1795069585905,0,NULL,NULL,0,NULL);
INSERT INTO "frontier" VALUES(1,5,'done',NULL,'page','spider',0,1,0,1,2,1,NULL,2,1,NULL,0,0,0,NULL,5,0,NULL);
INSERT INTO "frontier" VALUES(1,6,'done',NULL,'page','spider',0,1,0,1,2,1,NULL,2,2,'http://127.0.0.1:8765/b/',0,0,0,NULL,6,0,NULL);
INSERT INTO "frontier" VALUES(1,7,'done',NULL,'page','spider',0,1,0,1,2,1,NULL,2,3,NULL,0,0,0,NULL,7,0,NULL);
INSERT INTO "frontier" VALUES(1,8,'done',NULL,'page','spider',0,1,0,1,2,1,NULL,2,4,NULL,0,0,0,NULL,8,0,NULL);
INSERT INTO "frontier" VALUES(1,9,'done',NULL,'page','spider',0,1,0,1,2,1,NULL,2,5,NULL,0,0,0,NULL,9,0,NULL);
INSERT INTO "frontier" VALUES(1,10,'refused','robots','page','spider',0,1,0,1,2,1,NULL,2,6,NULL,0,0,0,NULL,10,0,NULL);
INSERT INTO "frontier" VALUES(1,11,'refused','out_of_scope','page','spider',0,1,1,0,2,1,NULL,2,7,NULL,0,0,0,NULL,2,0,NULL);
INSERT INTO "frontier" VALUES(1,12,'pending',NULL,'page','spider',0,1,0,1,2,1,NULL,2,8,NULL,0,0,0,NULL,NULL,0,NULL);
INSERT INTO "frontier" VALUES(1,13,'pending',NULL,'page','sitemap',0,0,0,1,3,3,'2026-01-01',3,0,NULL,0,0,0,NULL,NULL,0,NULL);
CREATE TABLE host (
  host_id    INTEGER PRIMARY KEY,
  name       TEXT NOT NULL UNIQUE,
  wait_until_ms INTEGER NOT NULL DEFAULT 0, 
  wait_ms    INTEGER NOT NULL DEFAULT 0     
);
INSERT INTO "host" VALUES(1,'127.0.0.1:8765',0,0);
CREATE TABLE lane (
  run_id     INTEGER NOT NULL,
  lane       INTEGER NOT NULL,           
  pending    INTEGER NOT NULL, opened INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (run_id, lane)
);
INSERT INTO "lane" VALUES(1,1,3,0);
CREATE TABLE origin (
  origin     TEXT PRIMARY KEY,           
  down_since_ms INTEGER NOT NULL DEFAULT 0, 
  down_kind  TEXT NOT NULL DEFAULT '',
  down_message TEXT NOT NULL DEFAULT '',
  down_sessions INTEGER NOT NULL DEFAULT 0  
) WITHOUT ROWID;
INSERT INTO "origin" VALUES('http://127.0.0.1:8765',0,'','',0);
CREATE TABLE owner (                     
  only       INTEGER PRIMARY KEY CHECK (only = 1),
  token      INTEGER NOT NULL,           
  heartbeat  INTEGER NOT NULL,           
  beat_ms    INTEGER NOT NULL DEFAULT 0, 
  boot       TEXT,                       
  pid        INTEGER,
  machine    TEXT
);
INSERT INTO "owner" VALUES(1,1,9,0,'',1,'old');
CREATE TABLE probe (
  run_id     INTEGER NOT NULL,
  directory  TEXT NOT NULL,              
  seq        INTEGER NOT NULL,           
  request_url TEXT NOT NULL,             
  status     INTEGER NOT NULL,
  is_excuse  INTEGER NOT NULL,           
  text_hash  BLOB NOT NULL,
  payload    BLOB NOT NULL,
  size       INTEGER NOT NULL,
  file_id    INTEGER NOT NULL,
  "offset"   INTEGER NOT NULL,
  length     INTEGER NOT NULL,
  PRIMARY KEY (run_id, directory)
) WITHOUT ROWID;
CREATE TABLE promise (
  run_id     INTEGER NOT NULL,
  url_id     INTEGER NOT NULL,
  own        INTEGER NOT NULL,           
  first      INTEGER NOT NULL,           
  pages      INTEGER NOT NULL DEFAULT 0, 
  parts      INTEGER NOT NULL DEFAULT 0,
  share      INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (run_id, url_id)
) WITHOUT ROWID;
CREATE TABLE robots (                    
  run_id     INTEGER NOT NULL,
  origin     TEXT NOT NULL,
  seq        INTEGER NOT NULL,
  verdict    TEXT NOT NULL,              
  rules      BLOB,                       
  PRIMARY KEY (run_id, origin, seq)      
);
INSERT INTO "robots" VALUES(1,'http://127.0.0.1:8765',1,'rules',X'557365722D6167656E743A202A0A446973616C6C6F773A202F707269766174650A536974656D61703A20687474703A2F2F3132372E302E302E313A383736352F736974656D61702E786D6C0A');
CREATE TABLE run (
  run_id     INTEGER PRIMARY KEY,
  number     INTEGER NOT NULL UNIQUE,
  mode       TEXT NOT NULL,
  parent     INTEGER,
  state      TEXT NOT NULL,
  seq        INTEGER NOT NULL DEFAULT 0, 
  settings   TEXT NOT NULL,              
  disturbed  TEXT NOT NULL DEFAULT '',   
  created_ms INTEGER NOT NULL,
  ended_ms   INTEGER,
  inbox_id   INTEGER NOT NULL DEFAULT 0, 
  known      INTEGER NOT NULL DEFAULT 0,
  pending    INTEGER NOT NULL DEFAULT 0,
  pages      INTEGER NOT NULL DEFAULT 0,
  duplicates INTEGER NOT NULL DEFAULT 0,
  unchanged  INTEGER NOT NULL DEFAULT 0,
  resources  INTEGER NOT NULL DEFAULT 0,
  redirects  INTEGER NOT NULL DEFAULT 0,
  failed     INTEGER NOT NULL DEFAULT 0,
  refused    INTEGER NOT NULL DEFAULT 0,
  requests   INTEGER NOT NULL DEFAULT 0,
  size       INTEGER NOT NULL DEFAULT 0
, nofollow INTEGER NOT NULL DEFAULT 0, origin INTEGER, origin_seq INTEGER, "new" INTEGER NOT NULL DEFAULT 0, modified INTEGER NOT NULL DEFAULT 0, deleted INTEGER NOT NULL DEFAULT 0, unknown INTEGER NOT NULL DEFAULT 0, saved INTEGER NOT NULL DEFAULT 0, horizon INTEGER NOT NULL DEFAULT 0, swept INTEGER NOT NULL DEFAULT 0, concluded INTEGER NOT NULL DEFAULT 0, alarm TEXT NOT NULL DEFAULT '', counted INTEGER NOT NULL DEFAULT 0, follows INTEGER, beside INTEGER NOT NULL DEFAULT 0, token INTEGER NOT NULL DEFAULT 0);
INSERT INTO "run" VALUES(1,0,'baseline',NULL,'paused',10,'{"scope": "path", "loose_paths": false, "include": [], "exclude": [], "external_hops": 0, "max_depth": 0, "trap_depth": 1000, "order": "breadth", "query": "", "page_limit": 0, "resources": false, "sitemap": true, "robots": true, "cookies": true, "strict_order": false, "drop_params": [], "user_agent": "inchworm/0.1 (+https://github.com/inchworm/inchworm)", "rotate_user_agent": false, "compare_by": "text", "max_redirects": 10, "replay": []}','disturbed at 4 by http_5xx',1795069585147,NULL,0,11,3,3,1,0,0,1,1,2,7,320,0,NULL,NULL,0,0,0,0,0,1,0,0,'',0,NULL,0,1);
CREATE TABLE seed (
  run_id     INTEGER NOT NULL,
  number     INTEGER NOT NULL,
  url        TEXT NOT NULL,
  host       TEXT NOT NULL,              
  path       TEXT NOT NULL,              
  kept       INTEGER NOT NULL DEFAULT 0,
  requests   INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (run_id, number)
);
INSERT INTO "seed" VALUES(1,0,'http://127.0.0.1:8765/','127.0.0.1:8765','/',3,7);
CREATE TABLE session (
  run_id     INTEGER NOT NULL,
  number     INTEGER NOT NULL,
  token      INTEGER NOT NULL,
  state      TEXT NOT NULL,
  ended_by   TEXT,
  message    TEXT NOT NULL DEFAULT '',
  settings   TEXT NOT NULL,              
  start_seq  INTEGER NOT NULL,
  started_ms INTEGER NOT NULL,
  ended_ms   INTEGER,
  requests   INTEGER NOT NULL DEFAULT 0,
  size       INTEGER NOT NULL DEFAULT 0, unanswered INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (run_id, number)
);
INSERT INTO "session" VALUES(1,1,1,'completed','budget','','{"workers": 5, "budget": 7, "max_bytes": 0, "max_time": 0.0, "stop_below": 0.0, "stop_window": 100, "delay": 0.0, "connections_per_host": 0, "max_delay": 60.0, "proxies": [], "checkpoint_every": 2, "max_retries": 2, "timeout": 30.0, "connect_timeout": 10.0, "first_byte_timeout": 20.0, "max_body": 20000000, "max_age": 0.0, "skip_cache": false, "allow_private": false, "host_patience": 86400.0, "max_wait": 300.0, "grace": 10.0, "index": "", "extract": [], "each": "", "stale": 60.0}',0,1795069585159,1795069585235,7,320,0);
CREATE TABLE suspect (                   
  run_id     INTEGER NOT NULL,
  url_id     INTEGER NOT NULL,
  deaths     INTEGER NOT NULL,
  PRIMARY KEY (run_id, url_id)
);
CREATE TABLE undo (                      
  undo_id    INTEGER PRIMARY KEY,
  run_id     INTEGER NOT NULL,
  seq        INTEGER NOT NULL,
  subject    TEXT NOT NULL,              
  subject_id INTEGER NOT NULL,
  before     TEXT NOT NULL               
);
INSERT INTO "undo" VALUES(1,1,4,'frontier',4,'{"state": "pending", "reason": null, "seed": 0, "depth": 1, "hops": 0, "lane": 1, "place_seq": 2, "place_idx": 0, "request_url": null, "attempts": 0, "not_before_ms": 0, "chain": 0, "tried": null, "done": null, "rank": null}');
CREATE TABLE undone (                    
  log_id     INTEGER PRIMARY KEY,
  run_id     INTEGER NOT NULL,
  from_seq   INTEGER NOT NULL,
  to_seq     INTEGER NOT NULL
);
CREATE TABLE url (                       
  url_id     INTEGER PRIMARY KEY,
  hash       INTEGER NOT NULL,           
  url        TEXT NOT NULL
);
INSERT INTO "url" VALUES(1,-8968882341769261941,'http://127.0.0.1:8765/');
INSERT INTO "url" VALUES(2,8872864793383254733,'robots:http://127.0.0.1:8765/robots.txt');
INSERT INTO "url" VALUES(3,-5774482602480198563,'sitemap:http://127.0.0.1:8765/sitemap.xml');
INSERT INTO "url" VALUES(4,-8519637971478528483,'http://127.0.0.1:8765/flaky');
INSERT INTO "url" VALUES(5,-4048596799296234447,'http://127.0.0.1:8765/a');
INSERT INTO "url" VALUES(6,5122799699574320290,'http://127.0.0.1:8765/b');
INSERT INTO "url" VALUES(7,-9025047473175784999,'http://127.0.0.1:8765/old');
INSERT INTO "url" VALUES(8,-5400465383625961579,'http://127.0.0.1:8765/twin');
INSERT INTO "url" VALUES(9,-2465135586562313082,'http://127.0.0.1:8765/gone');
INSERT INTO "url" VALUES(10,3302822198681565526,'http://127.0.0.1:8765/private');
INSERT INTO "url" VALUES(11,3276922945207791336,'https://elsewhere.test/');
INSERT INTO "url" VALUES(12,-3371335739201997399,'http://127.0.0.1:8765/n');
INSERT INTO "url" VALUES(13,1533202335493860999,'http://127.0.0.1:8765/from-sitemap');
CREATE TABLE visit (                     
  log_id     INTEGER PRIMARY KEY,
  run_id     INTEGER NOT NULL,
  seq        INTEGER NOT NULL,
  session    INTEGER NOT NULL,
  url_id     INTEGER NOT NULL,
  request_url TEXT,                      
  kind       TEXT NOT NULL,
  at_ms      INTEGER NOT NULL,
  outcome    TEXT NOT NULL,
  requested  INTEGER NOT NULL,           
  failure    TEXT,
  message    TEXT,
  status     INTEGER NOT NULL,
  millis     INTEGER NOT NULL,
  size       INTEGER NOT NULL,
  content_type TEXT,
  etag       TEXT,
  last_modified TEXT,
  payload    BLOB,                       
  text_hash  BLOB,                       
  title      TEXT,
  language   TEXT,
  canonical  TEXT,
  meta       TEXT,                       
  links      BLOB,                       
  redirect   INTEGER,                    
  reader     TEXT,                       
  file_id    INTEGER,
  "offset"   INTEGER,
  length     INTEGER,
  revisit    INTEGER NOT NULL DEFAULT 0  
, change TEXT, note TEXT, link_hash BLOB, differences TEXT, missing INTEGER NOT NULL DEFAULT 0, share INTEGER, parts BLOB);
INSERT INTO "visit" VALUES(1,1,1,1,2,'http://127.0.0.1:8765/robots.txt','robots',1795069585165,'control',1,NULL,NULL,200,6,76,'text/plain; charset=utf-8',NULL,NULL,X'307A2352E0D65BED6EDFD268A44ABD24B02B28908BFEB8CC4E507F8785A9F377',NULL,NULL,NULL,NULL,NULL,X'03000000',NULL,'4 turbohtml=1.15.4 resources=0',1,299,423,0,NULL,NULL,NULL,NULL,0,NULL,NULL);
INSERT INTO "visit" VALUES(2,1,2,1,1,NULL,'page',1795069585187,'page',1,NULL,NULL,200,4,221,'text/html; charset=utf-8',NULL,NULL,X'14337294FD2C3112CF5CDED66AE1D89634E024402B705FE2FF13379B5852A324',X'14337294FD2C3112CF5CDED66AE1D89634E024402B705FE2FF13379B5852A324','Home',NULL,NULL,NULL,X'0400000005000000060000000700000008000000090000000A0000000B0000000C000000',NULL,'4 turbohtml=1.15.4 resources=0',1,722,450,0,NULL,NULL,X'D27F09B4B8211736',NULL,0,NULL,NULL);
INSERT INTO "visit" VALUES(3,1,3,1,3,'http://127.0.0.1:8765/sitemap.xml','sitemap',1795069585187,'control',1,NULL,NULL,200,5,102,'application/xml',NULL,NULL,X'67A53320DBD8BEAD64296B7C6F7B2AB81BAA7AFEA550C4F2454839AA12B233FC',NULL,NULL,NULL,NULL,NULL,X'0D000000',NULL,'4 turbohtml=1.15.4 resources=0',1,1172,416,0,NULL,NULL,NULL,NULL,0,NULL,NULL);
INSERT INTO "visit" VALUES(4,1,4,1,4,NULL,'page',1795069585207,'retry',1,'http_5xx','the server answered 503',503,2,4,'text/html; charset=utf-8',NULL,NULL,X'C9BC072F4FA8189466C2A8F2C36A56A4EF1E60A2FFA4986BA2F155CD176C128B',NULL,NULL,NULL,NULL,NULL,NULL,NULL,'4 turbohtml=1.15.4 resources=0',1,1588,392,0,NULL,NULL,NULL,NULL,0,NULL,NULL);
INSERT INTO "visit" VALUES(5,1,5,1,5,NULL,'page',1795069585207,'page',1,NULL,NULL,200,5,35,'text/html; charset=utf-8',NULL,NULL,X'A6B8B4439148F7D918EA664637577C4A3B10AE3D3BF3C19A44C9791D72608A52',X'A6B8B4439148F7D918EA664637577C4A3B10AE3D3BF3C19A44C9791D72608A52','A',NULL,NULL,NULL,X'06000000',NULL,'4 turbohtml=1.15.4 resources=0',1,1980,398,0,NULL,NULL,X'AC637C62224415FE',NULL,0,NULL,NULL);
INSERT INTO "visit" VALUES(6,1,6,1,6,'http://127.0.0.1:8765/b/','page',1795069585207,'page',1,NULL,NULL,200,5,16,'text/html; charset=utf-8',NULL,NULL,X'806C3F41D93278DAA039C8DBBE08F8881AC8B9945A54CBD8AEC26778D5BB817B',X'806C3F41D93278DAA039C8DBBE08F8881AC8B9945A54CBD8AEC26778D5BB817B','B',NULL,NULL,NULL,NULL,NULL,'4 turbohtml=1.15.4 resources=0',1,2378,383,0,NULL,NULL,X'2D06800538D394C2',NULL,0,NULL,NULL);
INSERT INTO "visit" VALUES(7,1,7,1,7,NULL,'page',1795069585207,'redirect',1,NULL,NULL,302,5,0,'application/octet-stream',NULL,NULL,X'E3B0C44298FC1C149AFBF4C8996FB92427AE41E4649B934CA495991B7852B855',NULL,NULL,NULL,NULL,NULL,NULL,5,'4 turbohtml=1.15.4 resources=0',1,2761,535,0,NULL,NULL,NULL,NULL,0,NULL,NULL);
INSERT INTO "visit" VALUES(8,1,8,1,8,NULL,'page',1795069585207,'duplicate',1,NULL,NULL,200,5,35,'text/html; charset=utf-8',NULL,NULL,X'A6B8B4439148F7D918EA664637577C4A3B10AE3D3BF3C19A44C9791D72608A52',X'A6B8B4439148F7D918EA664637577C4A3B10AE3D3BF3C19A44C9791D72608A52','A',NULL,NULL,NULL,X'06000000',NULL,'4 turbohtml=1.15.4 resources=0',1,3296,609,1,NULL,NULL,X'AC637C62224415FE',NULL,0,NULL,NULL);
INSERT INTO "visit" VALUES(9,1,9,1,9,NULL,'page',1795069585213,'failed',1,'http_4xx','the server answered 404',404,1,9,'text/html; charset=utf-8',NULL,NULL,X'907BA78B4545338D3539683E63ECB51CF51C10ADC9DABD86E92BD52339F298B9',NULL,NULL,NULL,NULL,NULL,NULL,NULL,'4 turbohtml=1.15.4 resources=0',1,3905,385,0,NULL,NULL,NULL,NULL,0,NULL,NULL);
CREATE TABLE withdrawn (
  at_ms      INTEGER NOT NULL,           
  run_id     INTEGER NOT NULL,
  url        TEXT NOT NULL,
  request_url TEXT NOT NULL
);
CREATE INDEX url_hash ON url (hash);
CREATE INDEX frontier_pending ON frontier (run_id, lane, place_seq, place_idx) WHERE state = 'pending';
CREATE UNIQUE INDEX visit_seq ON visit (run_id, seq);
CREATE INDEX visit_url ON visit (url_id, run_id);
CREATE INDEX visit_content ON visit (run_id, text_hash) WHERE outcome = 'page';
CREATE INDEX visit_payload ON visit (payload) WHERE file_id IS NOT NULL AND revisit = 0;
CREATE INDEX undo_seq ON undo (run_id, seq);
CREATE INDEX checkpoint_seq ON checkpoint (run_id, seq);
CREATE INDEX frontier_found ON frontier (run_id, found);
CREATE INDEX frontier_done ON frontier (run_id, done) WHERE done IS NOT NULL;
CREATE INDEX visit_alternate ON visit (run_id, text_hash) WHERE outcome = 'duplicate';
CREATE INDEX frontier_ranked ON frontier (run_id, lane, rank DESC, place_seq, place_idx)
  WHERE state = 'pending' AND rank IS NOT NULL;
CREATE INDEX visit_failed ON visit (run_id, failure, seq) WHERE outcome = 'failed';
CREATE INDEX visit_changed ON visit (run_id, change, seq) WHERE change IN ('new', 'modified', 'deleted');
CREATE INDEX withdrawn_url ON withdrawn (url);
COMMIT;
PRAGMA user_version = 7;
