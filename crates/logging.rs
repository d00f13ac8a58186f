pub use crate::config::Requests as RequestLog;
pub struct Seen{id:String,began:std::time::Instant}
impl Seen { pub fn begin(_:&axum::http::HeaderMap)->Self{Self{id:"x".into(),began:std::time::Instant::now()}} pub fn id(&self)->&str{&self.id} pub fn name(&self,_:&mut axum::http::HeaderMap){} pub fn elapsed(&self)->std::time::Duration{self.began.elapsed()} pub fn log(&self,_:RequestLog,_:&leasehold_api::Endpoint,_:u16,_:Option<&str>){} }
